"""External tables: the interface of their connectors, how members read them, and folders of Parquet and CSV files."""

from __future__ import annotations

from secateur.exports import exports

__all__, __getattr__ = exports(
    __name__,
    {
        "connector": ["Connector", "ConnectorContext", "ConnectorPartition", "ExternalScanRequest", "decode_connector"],
        "external_source": ["ExternalSource"],
        "folder": ["FolderConnector", "FolderFormat", "csv_folder", "parquet_folder"],
    },
)
