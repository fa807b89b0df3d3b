import assert from 'node:assert/strict'
import { access, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import type { ConfigMap, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Volume } from '#apis/core/v1.ts'
import { createMemoryMounter, type MemoryMounter } from '#kits/kubelet/memory-mounter.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log/log.ts'
import { createSeededRandom } from '#lib/random.ts'

import { createKubeletMeters } from '../metrics/kubelet-families.ts'
import { DiskVolumeManager } from './disk-volume-manager.ts'
import { mountFailure } from './mounts/mounter.ts'
import type { VolumeSources } from './volume-plugin.ts'

interface Bed {
  readonly root: string
  readonly mounter: MemoryMounter
  readonly maps: Map<string, ConfigMap>
  readonly secrets: Map<string, Secret>
  readonly claims: Map<string, PersistentVolumeClaim>
  readonly persistent: Map<string, PersistentVolume>
  readonly left: string[]
  /** A new instance without state, as after a restart. */
  readonly restart: () => DiskVolumeManager
}

async function bedIn(t: TestContext): Promise<Bed> {
  const root = await mkdtemp(join(tmpdir(), 'volumes-'))
  t.after(() => rm(root, { recursive: true }))
  const mounter = createMemoryMounter()
  const maps = new Map<string, ConfigMap>()
  const secrets = new Map<string, Secret>()
  const claims = new Map<string, PersistentVolumeClaim>()
  const persistent = new Map<string, PersistentVolume>()
  const left: string[] = []
  const clock = createVirtualClock()
  const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock })
  const sources: VolumeSources = {
    configMap: async (_, name) => maps.get(name),
    secret: async (_, name) => secrets.get(name),
    token: async ({ audience }) => `token for ${audience}`,
    trustAnchors: async () => 'anchors',
    certificate: async () => ({ key: 'key', chain: 'chain' }),
    claim: async (_, name) => found(claims, name, 'persistentvolumeclaims'),
    persistentVolume: async (name) => found(persistent, name, 'persistentvolumes'),
    node: () => ({ metadata: { name: 'node1' } }) as unknown as Node,
    allocatable: () => ({ memory: '1Gi', cpu: '2' }),
  }
  const onUnmounted = (uid: string): void => void left.push(uid)
  const random = createSeededRandom(1)
  const tools = { clock, random, log, mounter, meters: createKubeletMeters() }
  const restart = (): DiskVolumeManager => new DiskVolumeManager({ rootDir: root, ...tools, sources, onUnmounted })
  return { root, mounter, maps, secrets, claims, persistent, left, restart }
}

const { signal } = new AbortController()

function found<T>(objects: ReadonlyMap<string, T>, name: string, resource: string): T {
  const object = objects.get(name)
  if (object === undefined) throw new Error(`${resource} "${name}" not found`)
  return object
}

/** Every volume is mounted below `/m`. */
function podWith(volumes: readonly Volume[], more: Partial<Pod['spec']> = {}): Pod {
  const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/m/${name}` }))
  return {
    metadata: { namespace: 'ns', name: 'p', uid: 'u1', labels: { app: 'web' } },
    spec: { containers: [{ name: 'c', volumeMounts }], volumes, ...more },
  } as unknown as Pod
}

async function pathOf(volumeManager: DiskVolumeManager, pod: Pod, volume: string): Promise<string> {
  const mounted = await volumeManager.mount(pod, signal)
  assert.ok('mounts' in mounted, JSON.stringify(mounted))
  return mounted.mounts.get(volume)?.hostPath ?? ''
}

test('volumes of each type have upstream’s paths', async (t) => {
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
  const mounted = await restart().mount(pod, signal)
  assert.ok('mounts' in mounted, JSON.stringify(mounted))
  const dir = `${root}/pods/u1/volumes`
  assert.deepEqual(
    [...mounted.mounts].map(([name, { hostPath, readOnly }]) => `${name} ${hostPath} ${readOnly}`).sort(),
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
    mounter.requests
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

test('a volume with a missing object fails with upstream’s message, and other volumes are mounted', async (t) => {
  const { root, maps, restart } = await bedIn(t)
  maps.set('cm', { metadata: {}, data: { a: '1' } })
  const mode = { defaultMode: 0o644 }
  const pod = podWith([
    { name: 'a', configMap: { name: 'absent', ...mode } },
    { name: 'b', secret: { secretName: 'absent', ...mode } },
    { name: 'c', configMap: { name: 'cm', items: [{ key: 'nope', path: 'x' }], ...mode } },
    { name: 'd', hostPath: { path: '/nosuchdir', type: 'Directory' } },
    { name: 'e', projected: { sources: [{ secret: { name: 's1' } }, { configMap: { name: 'cm1' } }], ...mode } },
    { name: 'f', iscsi: { targetPortal: 'x', iqn: 'y', lun: 0 } },
    { name: 'g', emptyDir: { medium: 'HugePages' } },
    { name: 'h', hostPath: { path: '/a/../b' } },
    { name: 'ok', configMap: { name: 'maybe', optional: true, ...mode } },
  ])
  const mounted = await restart().mount(pod, signal)
  assert.ok('failures' in mounted)
  const failed = (volume: string, why: string): string => `MountVolume.SetUp failed for volume "${volume}" : ${why}`
  assert.deepEqual([...mounted.failures].sort(), [
    failed('a', 'configmap "absent" not found'),
    failed('b', 'secret "absent" not found'),
    failed('c', 'configmap references non-existent config key: nope'),
    failed('d', 'hostPath type check failed: /nosuchdir is not a directory'),
    failed('e', '[secret "s1" not found, configmap "cm1" not found]'),
    failed('f', 'volumes of type iscsi are not supported by this kubelet'),
    failed('g', 'medium HugePages: hugePages storage requested, but there is no resource request for huge pages'),
    failed('h', "invalid HostPath `/a/../b`: must not contain '..'"),
  ])
  await access(`${root}/pods/u1/volumes/kubernetes.io~configmap/ok`)
})

test('a second mount updates the content of a volume and keeps other volumes, also after a restart', async (t) => {
  const { mounter, maps, secrets, restart } = await bedIn(t)
  maps.set('cm', { metadata: {}, data: { a: '1' } })
  secrets.set('s', { metadata: {}, data: { k: 'YQ==' } })
  const pod = podWith([
    { name: 'e', emptyDir: {} },
    { name: 'cm', configMap: { name: 'cm', defaultMode: 0o644 } },
    { name: 's', secret: { secretName: 's', defaultMode: 0o644 } },
  ])
  const volumeManager = restart()
  const own = await pathOf(volumeManager, pod, 'e')
  await writeFile(join(own, 'mine'), 'kept')
  maps.set('cm', { metadata: {}, data: { a: '2' } })
  assert.equal(await readFile(join(await pathOf(volumeManager, pod, 'cm'), 'a'), 'utf8'), '2')
  maps.set('cm', { metadata: {}, data: { a: '3' } })
  const next = restart()
  assert.equal(await readFile(join(await pathOf(next, pod, 'cm'), 'a'), 'utf8'), '3')
  assert.equal(await readFile(join(own, 'mine'), 'utf8'), 'kept')
  assert.equal(mounter.requests.length, 1)
})

test('unmounting a pod’s volumes removes mounts and directories, but no files behind links', async (t) => {
  const { root, mounter, secrets, left, restart } = await bedIn(t)
  const outside = join(root, 'outside')
  await mkdir(outside)
  await writeFile(join(outside, 'precious'), '')
  secrets.set('s', { metadata: {}, data: { k: 'YQ==' } })
  const pod = podWith([
    { name: 'e', emptyDir: {} },
    { name: 's', secret: { secretName: 's', defaultMode: 0o644 } },
  ])
  const volumeManager = restart()
  const own = await pathOf(volumeManager, pod, 'e')
  await symlink(outside, join(own, 'link'))
  await mkdir(join(own, 'deep/er'), { recursive: true })
  await symlink(outside, join(own, 'deep/er/link'))
  assert.deepEqual(await volumeManager.uids(), ['u1'])
  mounter.fault = 'umount failed: target is busy'
  await assert.rejects(volumeManager.unmount('u1'), /target is busy/)
  await access(own)
  mounter.fault = undefined
  await volumeManager.unmount('u1')
  await volumeManager.unmount('u1')
  assert.deepEqual(await mounter.list(), [])
  assert.deepEqual(await volumeManager.uids(), [])
  assert.deepEqual(await readdir(outside), ['precious'])
  assert.ok(left.includes('u1'))
  await assert.rejects(volumeManager.unmount('../..'), /invalid pod UID/)
})

test('fsGroup of the pod becomes the group of its volumes', async (t) => {
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
  const volumeManager = restart()
  assert.equal((await stat(await pathOf(volumeManager, pod, 'e'))).mode & 0o7777, 0o2777)
  const file = await stat(join(await pathOf(volumeManager, pod, 'cm'), 'a'))
  assert.equal(file.mode & 0o7777, 0o440)
  assert.equal(file.gid, fsGroup)
})

const boundClaim = (name: string, volumeName: string): PersistentVolumeClaim => ({
  metadata: { namespace: 'ns', name, uid: `uid-${name}` },
  spec: { volumeName, resources: {} },
  status: { phase: 'Bound' },
})

const persistentVolume = (name: string, claim: string, spec: PersistentVolume['spec']): PersistentVolume => ({
  metadata: { name },
  spec: { claimRef: { uid: `uid-${claim}` }, ...spec },
  status: {},
})

const claimVolume = (name: string, more: { readOnly?: boolean } = {}): Volume => ({
  name,
  persistentVolumeClaim: { claimName: name, ...more },
})

test('a volume of a claim is a path of the node or a directory for the pod', async (t) => {
  const { root, mounter, claims, persistent, restart } = await bedIn(t)
  await mkdir(join(root, 'disk1'))
  claims
    .set('a', boundClaim('a', 'pv-a'))
    .set('b', boundClaim('b', 'pv-b'))
    .set('p-c', {
      ...boundClaim('p-c', 'pv-c'),
      metadata: {
        ...boundClaim('p-c', 'pv-c').metadata,
        ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u1', controller: true }],
      },
    })
  const terms = [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node1'] }] }]
  persistent
    .set('pv-a', persistentVolume('pv-a', 'a', { hostPath: { path: root, type: 'Directory' } }))
    .set('pv-b', persistentVolume('pv-b', 'b', { local: { path: join(root, 'disk1') } }))
    .set(
      'pv-c',
      persistentVolume('pv-c', 'p-c', {
        local: { path: join(root, 'disk1') },
        nodeAffinity: { required: { nodeSelectorTerms: terms } },
        mountOptions: ['noatime'],
      }),
    )
  const ephemeral: Volume = { name: 'c', ephemeral: { volumeClaimTemplate: { metadata: {}, spec: { resources: {} } } } }
  const mounted = await restart().mount(
    podWith([claimVolume('a', { readOnly: true }), claimVolume('b'), ephemeral]),
    signal,
  )
  assert.ok('mounts' in mounted, JSON.stringify(mounted))
  const dir = `${root}/pods/u1/volumes/kubernetes.io~local-volume`
  assert.deepEqual(
    [...mounted.mounts].map(([name, { hostPath, readOnly }]) => `${name} ${hostPath} ${readOnly}`).sort(),
    [`a ${root} true`, `b ${dir}/pv-b false`, `c ${dir}/pv-c false`],
  )
  assert.deepEqual(
    mounter.requests.map(({ source, options }) => `${source.slice(root.length)} ${options.join(',')}`).sort(),
    ['/disk1 bind', '/disk1 bind,noatime'],
  )
})

test('claims that are not bound are reported in one message, with upstream’s text', async (t) => {
  const { claims, persistent, restart } = await bedIn(t)
  claims
    .set('pending', { ...boundClaim('pending', ''), status: { phase: 'Pending' } })
    .set('odd', boundClaim('odd', 'pv-odd'))
    .set('p-eph', boundClaim('p-eph', 'pv-x'))
    .set('raw', boundClaim('raw', 'pv-raw'))
  persistent
    .set('pv-odd', persistentVolume('pv-odd', 'other', {}))
    .set('pv-raw', persistentVolume('pv-raw', 'raw', { volumeMode: 'Block' }))
  const ephemeral: Volume = {
    name: 'eph',
    ephemeral: { volumeClaimTemplate: { metadata: {}, spec: { resources: {} } } },
  }
  const volumes = [claimVolume('absent'), claimVolume('pending'), claimVolume('odd'), ephemeral, claimVolume('raw')]
  const mounted = await restart().mount(podWith(volumes), signal)
  assert.ok('failures' in mounted)
  const names = '[absent eph odd pending raw]'
  const [text = ''] = mounted.failures
  assert.ok(
    text.startsWith(
      `Unable to attach or mount volumes: unmounted volumes=${names}, unattached volumes=[], failed to process volumes=${names}: `,
    ),
    text,
  )
  for (const part of [
    'error processing PVC ns/absent: failed to fetch PVC from API server: persistentvolumeclaims "absent" not found',
    'error processing PVC ns/pending: PVC is not bound',
    'error processing PVC ns/odd: found PV object pv-odd but its pv.Spec.ClaimRef.UID uid-other does not point to claim.UID uid-odd',
    'PVC ns/p-eph was not created for pod ns/p (pod is not owner)',
    'volume raw has volumeMode Block, but is specified in volumeMounts',
  ]) {
    assert.ok(text.includes(part), `${part}\n${text}`)
  }
  assert.equal(mounted.failures.length, 1)
})

test('volumes that are on other nodes, missing or unsupported are rejected', async (t) => {
  const { claims, persistent, restart } = await bedIn(t)
  claims.set('a', boundClaim('a', 'pv-a')).set('b', boundClaim('b', 'pv-b')).set('c', boundClaim('c', 'pv-c'))
  const terms = [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node2'] }] }]
  persistent
    .set('pv-a', persistentVolume('pv-a', 'a', { local: { path: '/nosuch' } }))
    .set(
      'pv-b',
      persistentVolume('pv-b', 'b', {
        local: { path: '/' },
        nodeAffinity: { required: { nodeSelectorTerms: terms } },
      }),
    )
    .set('pv-c', persistentVolume('pv-c', 'c', { capacity: {}, iscsi: { targetPortal: 'x', iqn: 'y', lun: 0 } }))
  const mounted = await restart().mount(podWith(['a', 'b', 'c'].map((name) => claimVolume(name))), signal)
  assert.ok('failures' in mounted)
  assert.deepEqual([...mounted.failures].sort(), [
    'MountVolume.NewMounter initialization failed for volume "pv-a" : path "/nosuch" does not exist',
    'MountVolume.NodeAffinity check failed for volume "pv-b" : no matching NodeSelectorTerms',
    'MountVolume.SetUp failed for volume "pv-c" : volumes of type iscsi are not supported by this kubelet',
  ])
})

test('an NFS volume is mounted once with its options, and unmounted with the pod', async (t) => {
  const { root, mounter, claims, persistent, restart } = await bedIn(t)
  claims.set('a', boundClaim('a', 'pv-a'))
  const nfs = { server: '2001:db8::1', path: '/exports' }
  persistent.set('pv-a', persistentVolume('pv-a', 'a', { nfs, mountOptions: ['vers=4.2', 'hard'] }))
  const pod = podWith([claimVolume('a'), { name: 'b', nfs: { server: 'files', path: '/b', readOnly: true } }])
  const volumeManager = restart()
  const dir = `${root}/pods/u1/volumes/kubernetes.io~nfs`
  assert.equal(await pathOf(volumeManager, pod, 'b'), `${dir}/b`)
  await restart().mount(pod, signal)
  const byTarget = mounter.requests.toSorted((one, other) => (one.target < other.target ? -1 : 1))
  assert.deepEqual(byTarget, [
    { source: 'files:/b', target: `${dir}/b`, type: 'nfs', options: ['ro'] },
    { source: '[2001:db8::1]:/exports', target: `${dir}/pv-a`, type: 'nfs', options: ['hard', 'vers=4.2'] },
  ])
  await volumeManager.unmount('u1')
  assert.deepEqual(await mounter.list(), [])
})

test('a failed mount of a volume leaves no directory, and has upstream’s message', async (t) => {
  const { root, mounter, restart } = await bedIn(t)
  const output = 'mount.nfs: Connection refused\n'
  const args = ['-t', 'nfs', 'files:/b', '/target']
  mounter.mount = async () => {
    throw new Error(mountFailure(args, { exitCode: 32, output }))
  }
  const mounted = await restart().mount(podWith([{ name: 'b', nfs: { server: 'files', path: '/b' } }]), signal)
  const why = 'mount failed: exit status 32\nMounting command: mount\nMounting arguments: -t nfs files:/b /target'
  const text = `MountVolume.SetUp failed for volume "b" : ${why}\nOutput: ${output}`
  assert.deepEqual(mounted, { failures: [text] })
  await assert.rejects(access(`${root}/pods/u1/volumes/kubernetes.io~nfs/b`))
})

test('a subPath of a volume is created, mounted once, and never leads outside the volume', async (t) => {
  const { root, mounter, restart } = await bedIn(t)
  const pod = podWith([{ name: 'e', emptyDir: {} }])
  const volumeManager = restart()
  const hostPath = await pathOf(volumeManager, pod, 'e')
  const request = (subPath: string, index = 0): Promise<string> =>
    volumeManager.subPath({ uid: 'u1', container: 'c', volume: 'e', index, hostPath, subPath })
  const target = `${root}/pods/u1/volume-subpaths/e/c/0`
  assert.equal(await request('a/b'), target)
  assert.equal((await stat(join(hostPath, 'a/b'))).mode & 0o7777, 0o777)
  assert.deepEqual(mounter.requests.at(-1)?.options, ['bind'])
  assert.match(mounter.requests.at(-1)?.source ?? '', new RegExp(`^/proc/${process.pid}/fd/\\d+$`))
  await writeFile(join(hostPath, 'file'), 'text')
  assert.ok((await stat(await request('file', 1))).isFile())
  await symlink('a', join(hostPath, 'inside'))
  await request('inside/b', 2)
  await symlink('/etc', join(hostPath, 'outside'))
  await symlink('/nosuch', join(hostPath, 'dangling'))
  const prepare = 'failed to prepare subPath for volumeMount "e" of container "c"'
  const create = 'failed to create subPath directory for volumeMount "e" of container "c"'
  await assert.rejects(request('outside', 3), { message: prepare })
  await assert.rejects(request('outside/new', 3), { message: create })
  await assert.rejects(request('dangling', 3), { message: create })
  await assert.rejects(request('/etc', 3), { message: 'error SubPath `/etc` must not be an absolute path' })
  await assert.rejects(request('a/../b', 3), { message: "unable to provision SubPath `a/../b`: must not contain '..'" })
  await assert.rejects(access('/etc/new'))
  assert.equal(await volumeManager.read(hostPath, 'file'), 'text')
  await assert.rejects(volumeManager.read(hostPath, 'outside/passwd'), /not within volume path/)
  await volumeManager.unmount('u1')
  assert.deepEqual(await mounter.list(), [])
})

test('the mount of volumes ends when its signal is aborted, without waiting for the API server', async (t) => {
  const { maps, restart } = await bedIn(t)
  const ending = new AbortController()
  maps.get = () => {
    ending.abort()
    return undefined
  }
  const pod = podWith([{ name: 'cm', configMap: { name: 'cm', defaultMode: 0o644 } }])
  assert.deepEqual(await restart().mount(pod, ending.signal), { failures: [] })
})
