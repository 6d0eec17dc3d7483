"""Doors to other people's data: published data sets, pretrained encoders, AnnData and MuData."""
