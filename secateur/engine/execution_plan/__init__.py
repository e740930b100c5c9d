"""From a DAG to what each member runs: member pruning and the resolved plan."""
