"""Quarantine: records without a window, shown, and released once a contract gives them one."""
