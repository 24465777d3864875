"""Starts Hadoop as the published image does: variables such as CORE-SITE.XML_fs.defaultFS become its configuration."""

import os
import sys
from pathlib import Path
from xml.sax.saxutils import escape

ETC = Path("/opt/hadoop/etc")
for name in ("CORE-SITE.XML", "HDFS-SITE.XML"):
    settings = {key.split("_", 1)[1]: value for key, value in os.environ.items() if key.startswith(f"{name}_")}
    rows = (f"<property><name>{key}</name><value>{escape(value)}</value></property>" for key, value in settings.items())
    (ETC / name.lower()).write_text(f"<configuration>{''.join(rows)}</configuration>")
(ETC / "log4j.properties").write_text(
    "log4j.rootLogger=INFO,err\nlog4j.appender.err=org.apache.log4j.ConsoleAppender\n"
    "log4j.appender.err.target=System.err\nlog4j.appender.err.layout=org.apache.log4j.SimpleLayout\n"
)
os.execvp(sys.argv[1], sys.argv[1:])
