import assert from 'node:assert/strict'
import { access, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import type { ConfigMap, Pod, Secret, Volume } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log.ts'
import { createSeededRandom } from '#lib/random.ts'

import { DiskVolumes } from './disk-volumes.ts'
import { createMemoryMounter, type MemoryMounter } from './memory-mounter.ts'
import type { VolumeSources } from './volume-plugin.ts'

interface Bed {
  readonly root: string
  readonly mounter: MemoryMounter
  readonly maps: Map<string, ConfigMap>
  readonly secrets: Map<string, Secret>
  readonly left: string[]
  /** As after a restart: it knows nothing. */
  readonly restart: () => DiskVolumes
}

async function bedIn(t: TestContext): Promise<Bed> {
  const root = await mkdtemp(join(tmpdir(), 'volumes-'))
  t.after(() => rm(root, { recursive: true }))
  const mounter = createMemoryMounter()
  const maps = new Map<string, ConfigMap>()
  const secrets = new Map<string, Secret>()
  const left: string[] = []
  const clock = createVirtualClock()
  const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock })
  const sources: VolumeSources = {
    configMap: async (_, name) => maps.get(name),
    secret: async (_, name) => secrets.get(name),
    token: async ({ audience }) => `token for ${audience}`,
    trustAnchors: async () => 'anchors',
    allocatable: () => ({ memory: '1Gi', cpu: '2' }),
  }
  const onLeave = (uid: string): void => void left.push(uid)
  const random = createSeededRandom(1)
  const restart = (): DiskVolumes => new DiskVolumes({ rootDir: root, clock, random, log, mounter, sources, onLeave })
  return { root, mounter, maps, secrets, left, restart }
}

/** Every volume is mounted below `/m`. */
function podWith(volumes: readonly Volume[], more: Partial<Pod['spec']> = {}): Pod {
  const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/m/${name}` }))
  return {
    metadata: { namespace: 'ns', name: 'p', uid: 'u1', labels: { app: 'web' } },
    spec: { containers: [{ name: 'c', volumeMounts }], volumes, ...more },
  } as unknown as Pod
}

async function pathOf(keeper: DiskVolumes, pod: Pod, volume: string): Promise<string> {
  const brought = await keeper.bring(pod)
  assert.ok('mounts' in brought, JSON.stringify(brought))
  return brought.mounts.get(volume)?.hostPath ?? ''
}

test('each kind of volume is where upstream has it', async (t) => {
  const { root, mounter, maps, secrets, restart } = await bedIn(t)
  maps.set('cm', { metadata: {}, data: { a: '1' }, binaryData: { b: 'AgM=' } })
  secrets.set('s', { metadata: {}, data: { k: Buffer.from('hush').toString('base64') } })
  const pod = podWith([
    { name: 'plain', emptyDir: {} },
    { name: 'fast', emptyDir: { medium: 'Memory', sizeLimit: '64Mi' } },
    { name: 'cm', configMap: { name: 'cm', defaultMode: 0o440 } },
    { name: 's', secret: { secretName: 's', defaultMode: 0o644, items: [{ key: 'k', path: 'deep/k', mode: 0o400 }] } },
    {
      name: 'd',
      downwardAPI: { defaultMode: 0o644, items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] },
    },
    {
      name: 'p',
      projected: {
        defaultMode: 0o644,
        sources: [
          { serviceAccountToken: { path: 'token', audience: 'x', expirationSeconds: 3607 } },
          { configMap: { name: 'cm', items: [{ key: 'a', path: 'ca.crt' }] } },
          { clusterTrustBundle: { name: 'b', path: 'anchors' } },
        ],
      },
    },
    { name: 'h', hostPath: { path: root, type: 'Directory' } },
    { name: 'unused', configMap: { name: 'absent', defaultMode: 0o644 } },
  ])
  pod.spec.containers[0]?.volumeMounts?.pop()
  const brought = await restart().bring(pod)
  assert.ok('mounts' in brought, JSON.stringify(brought))
  const dir = `${root}/pods/u1/volumes`
  assert.deepEqual(
    [...brought.mounts].map(([name, { hostPath, readOnly }]) => `${name} ${hostPath} ${readOnly}`).sort(),
    [
      `cm ${dir}/kubernetes.io~configmap/cm true`,
      `d ${dir}/kubernetes.io~downward-api/d true`,
      `fast ${dir}/kubernetes.io~empty-dir/fast false`,
      `h ${root} false`,
      `p ${dir}/kubernetes.io~projected/p true`,
      `plain ${dir}/kubernetes.io~empty-dir/plain false`,
      `s ${dir}/kubernetes.io~secret/s true`,
    ],
  )
  assert.equal(await readFile(`${dir}/kubernetes.io~configmap/cm/a`, 'utf8'), '1')
  assert.deepEqual(await readFile(`${dir}/kubernetes.io~configmap/cm/b`), Buffer.from([2, 3]))
  assert.equal((await stat(`${dir}/kubernetes.io~configmap/cm/a`)).mode & 0o777, 0o440)
  assert.equal((await stat(`${dir}/kubernetes.io~secret/s/deep/k`)).mode & 0o777, 0o400)
  assert.equal(await readFile(`${dir}/kubernetes.io~downward-api/d/labels`, 'utf8'), 'app="web"')
  assert.deepEqual(
    (await readdir(`${dir}/kubernetes.io~projected/p`)).filter((name) => !name.startsWith('..')).sort(),
    ['anchors', 'ca.crt', 'token'],
  )
  assert.equal((await stat(`${dir}/kubernetes.io~empty-dir/plain`)).mode & 0o7777, 0o777)
  assert.equal((await stat(`${root}/pods/u1`)).mode & 0o777, 0o750)
  for (const wrapped of ['plain', 'fast', 'wrapped_cm', 'wrapped_s', 'wrapped_d', 'wrapped_p']) {
    await access(`${root}/pods/u1/plugins/kubernetes.io~empty-dir/${wrapped}/ready`)
  }
  assert.deepEqual(
    mounter.asked
      .map(({ target, type, options }) => `${type} ${target.slice(dir.length + 1)} ${options.join(',')}`)
      .sort(),
    [
      'tmpfs kubernetes.io~downward-api/d size=1073741824,noswap',
      'tmpfs kubernetes.io~empty-dir/fast size=67108864,noswap',
      'tmpfs kubernetes.io~projected/p size=1073741824,noswap',
      'tmpfs kubernetes.io~secret/s size=1073741824,noswap',
    ],
  )
})

test('what is missing is said in upstream’s words, and keeps nothing else from coming', async (t) => {
  const { root, maps, restart } = await bedIn(t)
  maps.set('cm', { metadata: {}, data: { a: '1' } })
  const mode = { defaultMode: 0o644 }
  const pod = podWith([
    { name: 'a', configMap: { name: 'absent', ...mode } },
    { name: 'b', secret: { secretName: 'absent', ...mode } },
    { name: 'c', configMap: { name: 'cm', items: [{ key: 'nope', path: 'x' }], ...mode } },
    { name: 'd', hostPath: { path: '/nosuchdir', type: 'Directory' } },
    { name: 'e', projected: { sources: [{ secret: { name: 's1' } }, { configMap: { name: 'cm1' } }], ...mode } },
    { name: 'f', nfs: { server: 'x', path: '/' } },
    { name: 'g', emptyDir: { medium: 'HugePages' } },
    { name: 'h', hostPath: { path: '/a/../b' } },
    { name: 'ok', configMap: { name: 'maybe', optional: true, ...mode } },
  ])
  const brought = await restart().bring(pod)
  assert.ok('failures' in brought)
  const failed = (volume: string, why: string): string => `MountVolume.SetUp failed for volume "${volume}" : ${why}`
  assert.deepEqual([...brought.failures].sort(), [
    failed('a', 'configmap "absent" not found'),
    failed('b', 'secret "absent" not found'),
    failed('c', 'configmap references non-existent config key: nope'),
    failed('d', 'hostPath type check failed: /nosuchdir is not a directory'),
    failed('e', '[secret "s1" not found, configmap "cm1" not found]'),
    failed('f', 'volumes of type nfs are not supported by this kubelet'),
    failed('g', 'medium HugePages: huge pages as a volume are not supported by this kubelet'),
    failed('h', "invalid HostPath `/a/../b`: must not contain '..'"),
  ])
  await access(`${root}/pods/u1/volumes/kubernetes.io~configmap/ok`)
})

test('asked again, content follows the API and everything else stays; also after a restart', async (t) => {
  const { mounter, maps, secrets, restart } = await bedIn(t)
  maps.set('cm', { metadata: {}, data: { a: '1' } })
  secrets.set('s', { metadata: {}, data: { k: 'YQ==' } })
  const pod = podWith([
    { name: 'e', emptyDir: {} },
    { name: 'cm', configMap: { name: 'cm', defaultMode: 0o644 } },
    { name: 's', secret: { secretName: 's', defaultMode: 0o644 } },
  ])
  const keeper = restart()
  const own = await pathOf(keeper, pod, 'e')
  await writeFile(join(own, 'mine'), 'kept')
  maps.set('cm', { metadata: {}, data: { a: '2' } })
  assert.equal(await readFile(join(await pathOf(keeper, pod, 'cm'), 'a'), 'utf8'), '2')
  maps.set('cm', { metadata: {}, data: { a: '3' } })
  const next = restart()
  assert.equal(await readFile(join(await pathOf(next, pod, 'cm'), 'a'), 'utf8'), '3')
  assert.equal(await readFile(join(own, 'mine'), 'utf8'), 'kept')
  assert.equal(mounter.asked.length, 1)
})

test('a pod that leaves takes its mounts and directories along, and nothing that they point to', async (t) => {
  const { root, mounter, secrets, left, restart } = await bedIn(t)
  const outside = join(root, 'outside')
  await mkdir(outside)
  await writeFile(join(outside, 'precious'), '')
  secrets.set('s', { metadata: {}, data: { k: 'YQ==' } })
  const pod = podWith([
    { name: 'e', emptyDir: {} },
    { name: 's', secret: { secretName: 's', defaultMode: 0o644 } },
  ])
  const keeper = restart()
  const own = await pathOf(keeper, pod, 'e')
  await symlink(outside, join(own, 'link'))
  await mkdir(join(own, 'deep/er'), { recursive: true })
  await symlink(outside, join(own, 'deep/er/link'))
  assert.deepEqual(await keeper.uids(), ['u1'])
  mounter.fault = 'umount failed: target is busy'
  await assert.rejects(keeper.leave('u1'), /target is busy/)
  await access(own)
  mounter.fault = undefined
  await keeper.leave('u1')
  await keeper.leave('u1')
  assert.deepEqual(await mounter.list(), [])
  assert.deepEqual(await keeper.uids(), [])
  assert.deepEqual(await readdir(outside), ['precious'])
  assert.ok(left.includes('u1'))
  await assert.rejects(keeper.leave('../..'), /no uid of a pod/)
})

test('the group of a pod owns what it has', async (t) => {
  const { maps, restart } = await bedIn(t)
  maps.set('cm', { metadata: {}, data: { a: '1' } })
  const fsGroup = process.getgid?.() ?? 0
  const pod = podWith(
    [
      { name: 'e', emptyDir: {} },
      { name: 'cm', configMap: { name: 'cm', defaultMode: 0o400 } },
    ],
    { securityContext: { fsGroup } },
  )
  const keeper = restart()
  assert.equal((await stat(await pathOf(keeper, pod, 'e'))).mode & 0o7777, 0o2777)
  const file = await stat(join(await pathOf(keeper, pod, 'cm'), 'a'))
  assert.equal(file.mode & 0o7777, 0o440)
  assert.equal(file.gid, fsGroup)
})
