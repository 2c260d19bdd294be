"""Reads TPU profiles into columns and pages: numpy and protobuf only, no terminal."""
