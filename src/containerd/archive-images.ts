/**
 * Finds the images in an archive whose blobs are stored: names, configuration and layers. Each is verified before it is
 * named. Pure.
 */
import { normalImageName } from '#cri/image-name.ts'
import { isJsonObject, type JsonObject } from '#lib/json/value.ts'

import { type Archive, ArchiveError, type StoredFile } from './archive.ts'
import type { Blob } from './image-writer.ts'
import { type Layer, MEDIA_TYPE } from './manifest.ts'

/** An image in docker's format, for which we write the OCI manifest. */
export interface LooseImage {
  readonly names: readonly string[]
  readonly config: Blob
  readonly layers: readonly Layer[]
}

/** An image whose OCI manifest is in the archive. */
export interface WholeImage {
  readonly names: readonly string[]
  readonly target: Blob & { readonly mediaType: string }
  /** Digest of the configuration for this architecture. */
  readonly config: string
  /** References between blobs, as labels for containerd's garbage collector. */
  readonly references: ReadonlyMap<string, ReadonlyMap<string, string>>
}

export type ArchivedImage = LooseImage | WholeImage

/**
 * `name` replaces the name of an archive's only image. Throws ArchiveError for images of other platforms or with
 * missing parts.
 */
export function imagesIn(archive: Archive, architecture: string, name?: string): ArchivedImage[] {
  const isLayout = archive.file('oci-layout') !== undefined && archive.file('index.json') !== undefined
  const found = isLayout ? wholeImages(archive, architecture) : looseImages(archive, architecture)
  if (found.length === 0) throw new ArchiveError('the archive contains no images')
  if (name !== undefined && found.length > 1)
    throw new ArchiveError(`the archive contains ${found.length} images; --name needs an archive with one`)
  return found.map((image) => {
    const names = name === undefined ? image.names : [normalImageName(name)]
    if (names.length === 0) throw new ArchiveError('the image has no name; set one with --name')
    return { ...image, names }
  })
}

function looseImages(archive: Archive, architecture: string): LooseImage[] {
  const manifest = parsed(archive.file('manifest.json'), 'manifest.json')
  if (!Array.isArray(manifest)) throw new ArchiveError('manifest.json is not a list of images')
  return manifest.filter(isJsonObject).map((one) => looseImage(archive, one, architecture))
}

function looseImage(archive: Archive, { Config, RepoTags, Layers }: JsonObject, architecture: string): LooseImage {
  const names = strings(RepoTags).map(normalImageName)
  const what = names[0] ?? 'an image without a name'
  const file = required(archive, text(Config), what)
  const config = object(file, text(Config))
  checkPlatform(config, architecture, what)
  const { rootfs } = config
  const ids = isJsonObject(rootfs) ? strings(rootfs['diff_ids']) : []
  const layers = strings(Layers).map((name, at) => {
    const layer = required(archive, name, what)
    if (layer.compression === 'none' && layer.digest !== ids[at])
      throw new ArchiveError(`layer ${name} of ${what} does not match its configuration`)
    return { digest: layer.digest, size: layer.size, mediaType: LAYER_TYPES[layer.compression] }
  })
  if (layers.length !== ids.length)
    throw new ArchiveError(`${what} has ${layers.length} layers, but its configuration lists ${ids.length}`)
  return { names, config: { digest: file.digest, size: file.size }, layers }
}

const LAYER_TYPES = { none: MEDIA_TYPE.layer, gzip: MEDIA_TYPE.gzipLayer, zstd: MEDIA_TYPE.zstdLayer }

function wholeImages(archive: Archive, architecture: string): WholeImage[] {
  const index = object(archive.file('index.json'), 'index.json')
  const byTarget = new Map<string, WholeImage>()
  for (const descriptor of objects(index['manifests'])) {
    const { digest, mediaType } = descriptor
    const names = namesOf(archive, descriptor)
    const before = byTarget.get(text(digest))
    if (before !== undefined) {
      byTarget.set(text(digest), { ...before, names: [...before.names, ...names] })
      continue
    }
    const references = new Map<string, Map<string, string>>()
    const what = names[0] ?? text(digest)
    const config = walk(archive, text(digest), { references, architecture, what })
    if (config === undefined)
      throw new ArchiveError(`${what} has no image for linux/${architecture}, the platform of this machine`)
    const { size } = blobOf(archive, text(digest), what)
    byTarget.set(text(digest), {
      names,
      target: { digest: text(digest), size, mediaType: text(mediaType) },
      config,
      references,
    })
  }
  return [...byTarget.values()]
}

/** Full names only: a bare tag such as `latest` is not a name. Docker's manifest.json may contain the names instead. */
function namesOf(archive: Archive, { annotations, digest }: JsonObject): string[] {
  const notes = isJsonObject(annotations) ? annotations : {}
  const stated = [notes['io.containerd.image.name'], notes['org.opencontainers.image.ref.name']]
  const whole = stated.find((one): one is string => typeof one === 'string' && /[/:]/.test(one))
  if (whole !== undefined) return [normalImageName(whole)]
  const beside = archive.file('manifest.json')
  const manifests = beside === undefined ? [] : objects(parsed(beside, 'manifest.json'))
  const config = object(blobOf(archive, text(digest), text(digest)), text(digest))['config']
  const file = isJsonObject(config) ? text(config['digest']).replace(':', '/') : ''
  return manifests
    .filter(({ Config }) => Config === `blobs/${file}`)
    .flatMap(({ RepoTags }) => strings(RepoTags))
    .map(normalImageName)
}

interface Walk {
  readonly references: Map<string, Map<string, string>>
  readonly architecture: string
  readonly what: string
}

/** Records references between blobs. Returns the configuration for this machine, if it exists. */
function walk(archive: Archive, digest: string, { references, architecture, what }: Walk): string | undefined {
  const document = object(blobOf(archive, digest, what), digest)
  const refers = new Map<string, string>()
  references.set(digest, refers)
  if (Array.isArray(document['manifests'])) {
    // Manifests of other platforms may be listed without their content.
    const there = objects(document['manifests']).filter(
      (one) => archive.file(blobName(text(one['digest']))) !== undefined,
    )
    for (const [at, one] of there.entries()) refers.set(`containerd.io/gc.ref.content.m.${at}`, text(one['digest']))
    const found = there
      .filter((one) => isFor(one['platform'], architecture))
      .map((one) => walk(archive, text(one['digest']), { references, architecture, what }))
    return found.find((one) => one !== undefined)
  }
  const config = isJsonObject(document['config']) ? text(document['config']['digest']) : ''
  checkPlatform(object(blobOf(archive, config, what), config), architecture, what)
  refers.set('containerd.io/gc.ref.content.config', config)
  for (const [at, layer] of objects(document['layers']).entries()) {
    const named = text(layer['digest'])
    blobOf(archive, named, what)
    refers.set(`containerd.io/gc.ref.content.l.${at}`, named)
  }
  return config
}

/** A manifest without a platform may be for this machine. */
function isFor(platform: unknown, architecture: string): boolean {
  if (!isJsonObject(platform)) return true
  return platform['os'] === 'linux' && platform['architecture'] === architecture
}

function checkPlatform({ os, architecture }: JsonObject, wanted: string, what: string): void {
  if (os === 'linux' && architecture === wanted) return
  throw new ArchiveError(`${what} is for ${text(os)}/${text(architecture)}, this machine is linux/${wanted}`)
}

function blobName(digest: string): string {
  return `blobs/${digest.replace(':', '/')}`
}

function blobOf(archive: Archive, digest: string, what: string): StoredFile {
  return required(archive, blobName(digest), what)
}

function required(archive: Archive, name: string, what: string): StoredFile {
  const file = archive.file(name)
  if (file === undefined) throw new ArchiveError(`${name} of ${what} is missing`)
  return file
}

function parsed(file: StoredFile | undefined, name: string): unknown {
  if (file === undefined)
    throw new ArchiveError(`the archive is neither in docker's format nor an OCI layout: ${name} is missing`)
  try {
    return JSON.parse(file.json?.toString() ?? '')
  } catch (cause) {
    throw new ArchiveError(`${name} is not valid JSON`, { cause })
  }
}

function object(file: StoredFile | undefined, name: string): JsonObject {
  const value = parsed(file, name)
  if (!isJsonObject(value)) throw new ArchiveError(`${name} is not a JSON object`)
  return value
}

function objects(value: unknown): JsonObject[] {
  return Array.isArray(value) ? value.filter(isJsonObject) : []
}

function text(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []
}
