"""Protobuf's message types, from the text of a .proto file or from a descriptor set."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from base64 import b64decode
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message import DecodeError
from grpc_tools import protoc

from onceover.model.contract import BASE64

KINDS: Final = {
    number: name.removeprefix("TYPE_").lower() for name, number in vars(FieldDescriptor).items() if name[:5] == "TYPE_"
}
"""Protobuf's names of the types of fields."""
_FILE: Final = "schema.proto"
_SECONDS: Final = 30
_KNOWN: Final = str(Path(protoc.__file__).parent / "_proto")  # google/protobuf/timestamp.proto and its like


class ProtobufSchemaError(ValueError):
    """No Protobuf schema, or none with that message; the message says why, without a full stop."""


def find_message(schema: str, name: str) -> Descriptor:
    """Return the message type of that full name; of no name, the only one of the last file. Raises
    ProtobufSchemaError."""
    messages = _load(schema)
    if not name and len(messages) < 2:
        if messages:
            return messages[0]
        raise ProtobufSchemaError("it has no message")
    found = [each for each in _list_all(messages) if each.full_name == name]
    if not found:
        known = ", ".join(each.full_name for each in _list_all(messages)[:20])
        raise ProtobufSchemaError(f"it has no message {name}" if name else f"name one of its messages: {known}")
    return found[0]


def find_by_index(schema: str, index: Sequence[int]) -> Descriptor | None:
    """Return the message type that a value in Confluent's wire format names by its place, None without one."""
    messages, found = _load(schema), None
    for place in index:
        if not 0 <= place < len(messages):
            return None
        found = messages[place]
        messages = list(found.nested_types)
    return found


def write_file(schema: str) -> tuple[str, bytes]:
    """Return the suffix and the content of a contract's file with a registry's schema: its text, or of a schema that
    is none, a descriptor set. Raises ProtobufSchemaError."""
    _load(schema)
    files = _list_files(schema)
    is_text = files[-1].name == _FILE
    return (".proto", schema.encode()) if is_text else (".desc", FileDescriptorSet(file=files).SerializeToString())


def _list_all(messages: Sequence[Descriptor]) -> list[Descriptor]:
    nested = [each for message in messages for each in _list_all(message.nested_types)]
    return [*messages, *(each for each in nested if not each.GetOptions().map_entry)]


@lru_cache(maxsize=2048)
def _load(schema: str) -> list[Descriptor]:
    """Return the message types of the last file, in its order."""
    try:
        files = _list_files(schema)
        pool: Any = DescriptorPool()
        for each in files:
            pool.Add(each)
        last = pool.FindFileByName(files[-1].name)
        return [last.message_types_by_name[message.name] for message in files[-1].message_type]
    except ProtobufSchemaError:
        raise
    except (DecodeError, TypeError, KeyError, IndexError, ValueError) as error:
        raise ProtobufSchemaError("neither the text of a .proto file nor a descriptor set") from error


def _list_files(schema: str) -> list[FileDescriptorProto]:
    """Return the files of a contract's or a registry's schema, each after those that it imports."""
    if schema.startswith(BASE64):
        return list(FileDescriptorSet.FromString(b64decode(schema.removeprefix(BASE64))).file)
    try:
        written = FileDescriptorProto.FromString(b64decode(schema, validate=True))
    except (DecodeError, ValueError):
        return _compile(schema)
    # Confluent's serializer for Python registers a file as it is compiled.
    imports = "".join(f'import "{name}";' for name in written.dependency)
    return [*_compile(f'syntax = "proto3";{imports}')[:-1], written]


def _compile(text: str) -> list[FileDescriptorProto]:
    """Return the text's file, after those that it imports. In a process of its own, which may die of the text."""
    with tempfile.TemporaryDirectory(prefix="onceover-proto-") as folder:
        Path(folder, _FILE).write_text(text)
        made = Path(folder, "set")
        options = [f"-I{folder}", f"-I{_KNOWN}", "--include_imports", f"--descriptor_set_out={made}", _FILE]
        command = [sys.executable, "-m", "grpc_tools.protoc", *options]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False, cwd=folder)
        except subprocess.TimeoutExpired as error:
            raise ProtobufSchemaError(f"protoc does not compile it within {_SECONDS} s") from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").rpartition(f"/{_FILE}:")[2].splitlines()
            why = f"protoc: line {said[0][:200].rstrip('.')}" if said else "protoc does not compile it"
            hint = "; a file that imports others needs a descriptor set" if "Import" in why else ""
            raise ProtobufSchemaError(f"{why}{hint}")
        return list(FileDescriptorSet.FromString(made.read_bytes()).file)
