/** What an archive says its files make up: images with names, configurations and layers, checked before they are named. Pure. */
import { isJsonObject, type JsonObject } from '#lib/json-value.ts'

import { normalImageName } from '../image-name.ts'
import { type Archive, ArchiveError, type StoredFile } from './archive.ts'
import type { Blob } from './image-writer.ts'
import { type Layer, MEDIA_TYPE } from './manifest.ts'

/** One of docker's: its manifest is ours to write. */
export interface LooseImage {
  readonly names: readonly string[]
  readonly config: Blob
  readonly layers: readonly Layer[]
}

/** One whose manifest is in the archive. */
export interface WholeImage {
  readonly names: readonly string[]
  readonly target: Blob & { readonly mediaType: string }
  /** Of this machine's architecture. */
  readonly config: string
  /** What each blob refers to, for containerd's collector. */
  readonly references: ReadonlyMap<string, ReadonlyMap<string, string>>
}

export type ArchivedImage = LooseImage | WholeImage

/** `name`: of an archive's only image, instead of those it has. Throws ArchiveError for what cannot run here, or is not whole. */
export function imagesIn(archive: Archive, architecture: string, name?: string): ArchivedImage[] {
  const isLayout = archive.file('oci-layout') !== undefined && archive.file('index.json') !== undefined
  const found = isLayout ? wholeImages(archive, architecture) : looseImages(archive, architecture)
  if (found.length === 0) throw new ArchiveError('it has no images')
  if (name !== undefined && found.length > 1)
    throw new ArchiveError(`it has ${found.length} images; --name is for an archive with one`)
  return found.map((image) => {
    const names = name === undefined ? image.names : [normalImageName(name)]
    if (names.length === 0) throw new ArchiveError('it does not say what its image is called; use --name')
    return { ...image, names }
  })
}

function looseImages(archive: Archive, architecture: string): LooseImage[] {
  const manifest = parsed(archive.file('manifest.json'), 'manifest.json')
  if (!Array.isArray(manifest)) throw new ArchiveError('its manifest.json is no list of images')
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
      throw new ArchiveError(`layer ${name} of ${what} is not the one its configuration names`)
    return { digest: layer.digest, size: layer.size, mediaType: LAYER_TYPES[layer.compression] }
  })
  if (layers.length !== ids.length)
    throw new ArchiveError(`${what} has ${layers.length} layers, its configuration names ${ids.length}`)
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
      throw new ArchiveError(`${what} has nothing for linux/${architecture}, which this machine is`)
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

/** Whole names only: a tag alone (`latest`) names nothing. Docker writes the names beside as well. */
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

/** Notes what refers to what. Returns the configuration for this machine, if there is one below. */
function walk(archive: Archive, digest: string, { references, architecture, what }: Walk): string | undefined {
  const document = object(blobOf(archive, digest, what), digest)
  const refers = new Map<string, string>()
  references.set(digest, refers)
  if (Array.isArray(document['manifests'])) {
    // Of other machines' there may be the names alone.
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

/** What does not say for which machine it is may be for ours. */
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
  if (file === undefined) throw new ArchiveError(`${name}, a part of ${what}, is missing`)
  return file
}

function parsed(file: StoredFile | undefined, name: string): unknown {
  if (file === undefined) throw new ArchiveError(`it is neither docker's nor an OCI layout: there is no ${name}`)
  try {
    return JSON.parse(file.json?.toString() ?? '')
  } catch (cause) {
    throw new ArchiveError(`${name} is no JSON`, { cause })
  }
}

function object(file: StoredFile | undefined, name: string): JsonObject {
  const value = parsed(file, name)
  if (!isJsonObject(value)) throw new ArchiveError(`${name} is no JSON object`)
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
