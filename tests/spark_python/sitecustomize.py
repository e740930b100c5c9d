"""What each Python process of the tests' Spark begins with: ``conftest.py`` gives Spark this folder as a PYTHONPATH.

Spark takes PySpark from a zip file, and a worker reads the directory of the file again for each task, because a task
might have brought modules along. And a worker that is forked has loaded little of PySpark. Together that is much of
what tests with Spark compute, so the zip files are left out, and the process that forks loads first what is not ours.
"""

from __future__ import annotations

import sys

sys.path[:] = [path for path in sys.path if not path.endswith(".zip")]
for place in [path for path in sys.path_importer_cache if path.endswith(".zip")]:
    del sys.path_importer_cache[place]

if "pyspark.daemon" in sys.orig_argv:
    import pandas  # noqa: F401
    import pyspark.sql.worker.commit_data_source_write
    import pyspark.sql.worker.create_data_source
    import pyspark.sql.worker.plan_data_source_read
    import pyspark.sql.worker.write_into_data_source
    import pyspark.worker  # noqa: F401
