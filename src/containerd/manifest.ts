/** Writes the OCI manifest that combines a configuration and layers into an image. */
import type { Blob, ImageWriter } from './image-writer.ts'

export const MEDIA_TYPE = {
  manifest: 'application/vnd.oci.image.manifest.v1+json',
  config: 'application/vnd.oci.image.config.v1+json',
  layer: 'application/vnd.oci.image.layer.v1.tar',
  gzipLayer: 'application/vnd.oci.image.layer.v1.tar+gzip',
  zstdLayer: 'application/vnd.oci.image.layer.v1.tar+zstd',
} as const

export interface Layer extends Blob {
  readonly mediaType: string
}

export interface ImageParts {
  readonly names: readonly string[]
  readonly config: Blob
  readonly layers: readonly Layer[]
  readonly pinned?: boolean
}

/** The blobs must be written. Returns the digest of the manifest. */
export async function nameImage(writer: ImageWriter, { names, config, layers, pinned }: ImageParts): Promise<string> {
  const manifest = {
    schemaVersion: 2,
    mediaType: MEDIA_TYPE.manifest,
    config: { mediaType: MEDIA_TYPE.config, digest: config.digest, size: config.size },
    layers: layers.map(({ mediaType, digest, size }) => ({ mediaType, digest, size })),
  }
  const refers = new Map([
    ['containerd.io/gc.ref.content.config', config.digest],
    ...layers.map(({ digest }, at): [string, string] => [`containerd.io/gc.ref.content.l.${at}`, digest]),
  ])
  const target = { mediaType: MEDIA_TYPE.manifest, ...(await writer.writeJson(manifest, refers)) }
  // CRI also finds images by the digest of their configuration.
  await writer.name({ names: [config.digest, ...names], target, ...(pinned !== undefined && { pinned }) })
  return target.digest
}
