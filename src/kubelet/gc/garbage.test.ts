import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'

import type { Container, Image, PodSandbox } from '#apis/wire/cri.ts'
import { realClock } from '#lib/clock.ts'

import { bedOf, containerOf, FILES, podOf } from '../pods/worker.fixture.ts'
import { createLogFiles, linkName, NO_LOG_FILES } from '../runtime/log-links.ts'
import { excessOf, IMAGE_POLICY, ImageUse, outdated, sizeText, toFree } from './image-garbage.ts'
import { deadContainers, deadSandboxes, GARBAGE_POLICY, type RuntimeState } from './runtime-garbage.ts'

const STATES = { created: 0, running: 1, exited: 2 }

/** `a1` belongs to container `a`; the containers of `x` belong to `a` of another pod. */
const one = (id: string, state: keyof typeof STATES, createdS: number): Container =>
  ({
    id,
    podSandboxId: 's1',
    metadata: { name: id.startsWith('b') ? 'b' : 'a', attempt: 0 },
    state: STATES[state],
    createdAt: BigInt(createdS) * 1_000_000_000n,
    labels: new Map([['uid', id.startsWith('x') ? 'u2' : 'u1']]),
  }) as unknown as Container

const runtimeState = (containers: Container[], sandboxes: PodSandbox[] = [], gone: string[] = []): RuntimeState => ({
  containers,
  sandboxes,
  uidOf: ({ labels }) => labels.get('uid') ?? '',
  isGone: (uid) => gone.includes(uid),
})

test('garbage collection keeps the newest dead instance of each container, and none of removed pods', () => {
  const all = [
    one('a1', 'exited', 1),
    one('a2', 'exited', 2),
    one('a3', 'exited', 3),
    one('a4', 'running', 4),
    one('b1', 'exited', 1),
    one('x1', 'exited', 5),
  ]
  assert.deepEqual(deadContainers(runtimeState(all, [], ['u2']), GARBAGE_POLICY, 600_000), ['a1', 'a2', 'x1'])
  assert.deepEqual(deadContainers(runtimeState(all), { ...GARBAGE_POLICY, minAgeMs: 599_000 }, 600_000), [])
  const few = { ...GARBAGE_POLICY, maxPerContainer: 2, maxContainers: 2 }
  assert.deepEqual(deadContainers(runtimeState(all), few, 600_000), ['a1', 'b1', 'a2'])
})

test('garbage collection ignores a container that is about to start', () => {
  const all = [one('a1', 'exited', 1), one('a2', 'created', 599)]
  assert.deepEqual(deadContainers(runtimeState(all), GARBAGE_POLICY, 600_000), [])
})

test('garbage collection keeps the newest sandbox of a pod, ready ones, and those with containers', () => {
  const sandbox = (id: string, state: number, createdS: number, uid = 'u1'): PodSandbox =>
    ({ id, state, createdAt: BigInt(createdS), labels: new Map([['uid', uid]]) }) as unknown as PodSandbox
  const all = [
    sandbox('s0', 1, 0),
    sandbox('s1', 1, 1),
    sandbox('s2', 1, 2),
    sandbox('s3', 1, 3),
    sandbox('x', 1, 1, 'u2'),
  ]
  assert.deepEqual(deadSandboxes(runtimeState([one('a', 'exited', 1)], all, ['u2'])), ['s2', 's0', 'x'])
  assert.deepEqual(deadSandboxes(runtimeState([], [sandbox('s1', 0, 1), sandbox('s2', 1, 2)])), [])
})

const imageOf = (id: string, size: number, more: Partial<Image> = {}): Image =>
  ({ id, size, repoTags: [`${id}:1`], repoDigests: [], pinned: false, ...more }) as unknown as Image

test('image garbage collection removes the longest unused images first, and keeps pinned images and the pause image', () => {
  const use = new ImageUse()
  const images = [
    imageOf('a', 10),
    imageOf('b', 20),
    imageOf('c', 30, { pinned: true }),
    imageOf('d', 1, { repoTags: ['registry.k8s.io/pause:3.10'] }),
  ]
  const user = { image: { image: 'b:1' }, imageId: '', imageRef: '' } as unknown as Container
  use.observe(images, [user], 1000)
  assert.deepEqual(
    use.unused().map(({ id }) => id),
    ['a'],
  )
  use.observe([...images, imageOf('e', 5)], [], 300_000)
  assert.deepEqual(
    use.unused().map(({ id }) => id),
    ['a', 'e', 'b'],
  )
  const ids = (bytes: number): string[] => toFree(use.unused(), bytes, 120_000, 300_000).map(({ id }) => id)
  assert.deepEqual([ids(5), ids(100)], [['a'], ['a', 'b']])
  const old = outdated(use.unused(), { ...IMAGE_POLICY, maxAgeMs: 299_500 }, { nowMs: 300_000, beganMs: 0 })
  assert.deepEqual(
    old.map(({ id }) => id),
    ['a', 'e'],
  )
})

test('image garbage collection starts above 85 percent disk usage, and frees space down to 80 percent', () => {
  const disk = (availableBytes: number): Parameters<typeof excessOf>[0] => ({
    capacityBytes: 1000,
    availableBytes,
    inodes: 1,
    inodesFree: 1,
  })
  assert.equal(excessOf(disk(160), IMAGE_POLICY), undefined)
  assert.deepEqual(excessOf(disk(150), IMAGE_POLICY), { usedPercent: 85, bytes: 50 })
  assert.deepEqual([100, 2048, 264_212_084 * 1024].map(sizeText), ['100 B', '2.0 KiB', '252.0 GiB'])
})

test('image garbage collection frees space on a full disk, and records an event if that is not enough', async () => {
  const events: string[] = []
  const free = { bytes: 100e6 }
  const imageDisk = async (): Promise<Parameters<typeof excessOf>[0]> => ({
    capacityBytes: 1e9,
    availableBytes: free.bytes,
    inodes: 1,
    inodesFree: 1,
  })
  const recordNodeEvent = ({ reason, message }: { reason: string; message: string }): void =>
    void events.push(`${reason}: ${message}`)
  const { clock, workers, runtime } = bedOf({}, { imageDisk, recordNodeEvent })
  workers.updatePod({ type: 'ADDED', object: podOf() })
  await runtime.pullImage({ image: { image: 'unused:1' } })
  await clock.advance(310_000)
  const names = (await runtime.listImages({})).images.flatMap(({ repoTags }) => repoTags)
  assert.deepEqual(names, ['docker.io/library/nginx:1'])
  assert.match(
    events[0] ?? '',
    /^FreeDiskSpaceFailed: Insufficient free disk space on the node's image filesystem \(90% of 953.7 MiB used\)\. Failed to free sufficient space by deleting unused images \(freed \d+ bytes\)\./,
  )
  await clock.advance(300_000)
  assert.ok(events.some((recordEvent) => recordEvent.startsWith('ImageGCFailed: Insufficient free disk space')))
  await workers.stop()
})

test('directories of a removed pod are deleted within a minute, and those of existing pods stay', async () => {
  const removed: string[] = []
  const links: string[] = []
  const logs = {
    ...NO_LOG_FILES,
    link: async ({ container }: { container: string }) => void links.push(container),
    uids: async () => ['u1', 'u9'],
    remove: async (uid: string) => void removed.push(`logs ${uid}`),
    deadLinks: async () => [{ containerId: 'gone', path: '/var/log/containers/x' }],
    unlink: async (path: string) => void removed.push(path),
  }
  const files = { ...FILES, uids: async () => ['u1', 'u8'], remove: async (uid: string) => void removed.push(uid) }
  const { clock, workers, runtime } = bedOf({}, { logs, files })
  const containers = [containerOf('c', { command: ['sh', '-c', 'sleep 5'] })]
  workers.updatePod({ type: 'ADDED', object: podOf({ restartPolicy: 'Never', containers }) })
  workers.sourcesReady()
  await clock.advance(30_000)
  await clock.advance(61_000)
  assert.deepEqual(removed, ['u8', 'logs u9', '/var/log/containers/x'])
  assert.deepEqual(links, ['c'])
  assert.equal((await runtime.listContainers({})).containers.length, 1)
  assert.equal((await runtime.listPodSandbox({})).items.length, 1)
  await workers.stop()
})

test('links to container logs have names of limited length, and dangling links are found', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'logs-'))
  try {
    const [pods, links] = [join(dir, 'pods'), join(dir, 'containers')]
    const logs = createLogFiles(pods, links, realClock)
    await mkdir(join(pods, 'default_web_u1', 'c'), { recursive: true })
    const path = join(pods, 'default_web_u1', 'c', '0.log')
    await writeFile(path, '')
    const link = { pod: 'web', namespace: 'default', container: 'c', containerId: 'abc', path }
    await logs.link(link)
    await logs.link(link)
    assert.deepEqual(await readdir(links), ['web_default_c-abc.log'])
    assert.deepEqual([await logs.uids(), await logs.deadLinks()], [['u1'], []])
    await logs.remove('u1')
    assert.deepEqual(await readdir(pods), [])
    const [dead] = await logs.deadLinks()
    assert.equal(dead?.containerId, 'abc')
    await logs.unlink(dead?.path ?? '')
    assert.deepEqual(await readdir(links), [])
    assert.equal(linkName({ ...link, container: 'c'.repeat(300) }).length, 255)
  } finally {
    await rm(dir, { recursive: true })
  }
})
