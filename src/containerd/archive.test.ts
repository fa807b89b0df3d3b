import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { describe, it } from 'node:test'
import { gzipSync, zstdCompressSync } from 'node:zlib'

import { tarArchive, type TarFile, tarHeader } from '#lib/files/tar-write.ts'

import { type ArchivedImage, imagesIn } from './archive-images.ts'
import { type BlobStore, storeArchive } from './archive.ts'
import type { Bytes } from './image-writer.ts'

type File = TarFile & { readonly content?: Uint8Array }

const sha = (content: Uint8Array): string => createHash('sha256').update(content).digest('hex')
const file = (name: string, content: Uint8Array | object): File => ({
  name,
  mode: 0o644,
  content: content instanceof Uint8Array ? content : Buffer.from(JSON.stringify(content)),
})

/** Stores digests only. */
function createStore(): BlobStore & { readonly digests: Set<string> } {
  const digests = new Set<string>()
  return {
    digests,
    keep: async (digest) => digests.has(digest),
    async write(content: Bytes) {
      const hash = createHash('sha256')
      let size = 0
      for await (const part of content) {
        hash.update(part)
        size += part.length
      }
      const digest = `sha256:${hash.digest('hex')}`
      digests.add(digest)
      return { digest, size }
    },
  }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function images(archive: Uint8Array, name?: string): Promise<ArchivedImage[]> {
  return imagesIn(await storeArchive(once(archive), createStore()), 'amd64', name)
}

const LAYER = tarArchive([{ name: 'hello', mode: 0o644, content: Buffer.from('hello') }])
const configOf = (architecture = 'amd64', layer = LAYER): object => ({
  os: 'linux',
  architecture,
  rootfs: { type: 'layers', diff_ids: [`sha256:${sha(layer)}`] },
})

/** As older docker versions write it: the manifest last, and a layer as a link to another image's. */
const DOCKER: readonly File[] = [
  file('aaa/VERSION', Buffer.from('1.0')),
  file('aaa/layer.tar', LAYER),
  { name: 'bbb/layer.tar', mode: 0o777, link: '../aaa/layer.tar' },
  file('c.json', configOf()),
  file('manifest.json', [
    { Config: 'c.json', RepoTags: ['busybox:1', 'example.com/b:2'], Layers: ['aaa/layer.tar'] },
    { Config: 'c.json', RepoTags: ['other'], Layers: ['bbb/layer.tar'] },
  ]),
]

/** As buildkit writes it, for two platforms of which one is included. */
function layout(annotations: object, architecture = 'amd64'): File[] {
  const zipped = gzipSync(LAYER)
  const config = Buffer.from(JSON.stringify(configOf(architecture)))
  const blob = (content: Uint8Array): File => file(`blobs/sha256/${sha(content)}`, content)
  const named = (content: Uint8Array, mediaType: string, more: object = {}): object => ({
    mediaType,
    digest: `sha256:${sha(content)}`,
    size: content.length,
    ...more,
  })
  const layers = [named(zipped, 'application/vnd.oci.image.layer.v1.tar+gzip')]
  const manifest = Buffer.from(
    JSON.stringify({ config: named(config, 'application/vnd.oci.image.config.v1+json'), layers }),
  )
  const type = 'application/vnd.oci.image.manifest.v1+json'
  const index = Buffer.from(
    JSON.stringify({
      manifests: [
        { digest: `sha256:${'0'.repeat(64)}`, mediaType: type, platform: { os: 'linux', architecture: 's390x' } },
        named(manifest, type, { platform: { os: 'linux', architecture } }),
      ],
    }),
  )
  const top = named(index, 'application/vnd.oci.image.index.v1+json', { annotations })
  return [
    file('oci-layout', { imageLayoutVersion: '1.0.0' }),
    file('index.json', { manifests: [top] }),
    ...[index, manifest, config, zipped].map(blob),
  ]
}

const NAMED = { 'org.opencontainers.image.ref.name': 'example.com/app:1' }

describe('image archives', () => {
  it("load in docker's format, plain or compressed, with several images and links", async () => {
    const plain = tarArchive(DOCKER)
    for (const archive of [plain, gzipSync(plain), zstdCompressSync(plain)]) {
      const found = await images(archive)
      assert.deepEqual(
        found.map(({ names }) => names),
        [['docker.io/library/busybox:1', 'example.com/b:2'], ['docker.io/library/other:latest']],
      )
      for (const image of found) {
        const digest = `sha256:${sha(LAYER)}`
        const mediaType = 'application/vnd.oci.image.layer.v1.tar'
        assert.deepEqual('layers' in image && image.layers, [{ digest, size: LAYER.length, mediaType }])
      }
    }
  })

  it('load in OCI layout if they contain all content for this machine', async () => {
    const [image, ...rest] = await images(tarArchive(layout(NAMED)))
    assert.deepEqual([image?.names, rest], [['example.com/app:1'], []])
    assert.ok(image !== undefined && 'references' in image)
    const refers = [...image.references.values()].map((labels) => [...labels.keys()])
    assert.deepEqual(refers, [
      ['containerd.io/gc.ref.content.m.0'],
      ['containerd.io/gc.ref.content.config', 'containerd.io/gc.ref.content.l.0'],
    ])
    assert.equal(image.config, `sha256:${sha(Buffer.from(JSON.stringify(configOf())))}`)
  })

  it('can be renamed, and require a name if they contain none', async () => {
    const tagged = tarArchive(layout({ 'org.opencontainers.image.ref.name': 'latest' }))
    await assert.rejects(images(tagged), /the image has no name; set one with --name/)
    assert.deepEqual((await images(tagged, 'app:2'))[0]?.names, ['docker.io/library/app:2'])
    await assert.rejects(images(tarArchive(DOCKER), 'app:2'), /contains 2 images/)
  })

  const changed = (name: string, content: Uint8Array | object): File[] =>
    DOCKER.map((one) => (one.name === name ? file(name, content) : one))
  const table: [string, Uint8Array, RegExp][] = [
    ['in another format', Buffer.alloc(2048, 'no'), /no tar archive, or it is broken/],
    ['a tar archive without images', tarArchive([file('readme', Buffer.from('hi'))]), /manifest\.json is missing/],
    ['truncated', tarArchive(DOCKER).subarray(0, 2000), /cut short/],
    ['an archive with truncated compression', gzipSync(tarArchive(DOCKER)).subarray(0, 200), /unexpected end of file/],
    [
      'an archive with a missing layer',
      tarArchive(DOCKER.slice(2)),
      /aaa\/layer\.tar of docker\.io\/library\/busybox:1 is missing/,
    ],
    [
      'an archive with a wrong layer',
      tarArchive(changed('aaa/layer.tar', Buffer.alloc(512))),
      /does not match its configuration/,
    ],
    [
      'for another platform',
      tarArchive(changed('c.json', configOf('arm64'))),
      /busybox:1 is for linux\/arm64, this machine is linux\/amd64/,
    ],
    ['an OCI layout for another platform', tarArchive(layout(NAMED, 'arm64')), /has no image for linux\/amd64/],
    [
      'an archive with an invalid manifest',
      tarArchive(changed('manifest.json', Buffer.from('[{'))),
      /manifest\.json is not valid JSON/,
    ],
    [
      'an archive with a wrong blob',
      tarArchive(layout(NAMED).map((one) => (one.name.startsWith('blobs') ? file(one.name, Buffer.from('x')) : one))),
      /the content of blobs\/sha256\/[0-9a-f]+ has another digest/,
    ],
  ]
  for (const [what, archive, complaint] of table)
    it(`are rejected if the file is ${what}`, async () => {
      await assert.rejects(images(archive), complaint)
    })

  it('of any size are streamed with constant memory', async () => {
    const piece = Buffer.alloc(1 << 20)
    const pieces = 32
    let made = 0
    let taken = 0
    let lead = 0
    async function* archive(): AsyncGenerator<Uint8Array> {
      yield tarHeader({ name: 'layer.tar', mode: 0o644 }, piece.length * pieces)
      for (; made < pieces; made++) {
        lead = Math.max(lead, made - taken)
        yield piece
      }
    }
    const store: BlobStore = {
      keep: async () => false,
      async write(content) {
        for await (const part of content) taken += part.length / piece.length
        return { digest: '', size: 0 }
      },
    }
    await storeArchive(archive(), store)
    assert.equal(taken, pieces)
    assert.ok(lead <= 2, `${lead} MiB were held`)
  })
})
