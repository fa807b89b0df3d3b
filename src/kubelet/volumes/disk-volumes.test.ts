import assert from 'node:assert/strict'
import { access, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'

import type { ConfigMap, Node, PersistentVolume, PersistentVolumeClaim, Pod, Secret, Volume } from '#apis/core/v1.ts'
import { createVirtualClock } from '#lib/clock.ts'
import { createLog } from '#lib/log.ts'
import { createSeededRandom } from '#lib/random.ts'

import { createKubeletMeters } from '../metrics/kubelet-families.ts'
import { DiskVolumes } from './disk-volumes.ts'
import { createMemoryMounter, type MemoryMounter } from './memory-mounter.ts'
import type { VolumeSources } from './volume-plugin.ts'

interface Bed {
  readonly root: string
  readonly mounter: MemoryMounter
  readonly maps: Map<string, ConfigMap>
  readonly secrets: Map<string, Secret>
  readonly claims: Map<string, PersistentVolumeClaim>
  readonly persistent: Map<string, PersistentVolume>
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
  const onLeave = (uid: string): void => void left.push(uid)
  const random = createSeededRandom(1)
  const tools = { clock, random, log, mounter, meters: createKubeletMeters() }
  const restart = (): DiskVolumes => new DiskVolumes({ rootDir: root, ...tools, sources, onLeave })
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

async function pathOf(keeper: DiskVolumes, pod: Pod, volume: string): Promise<string> {
  const brought = await keeper.bring(pod, signal)
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
  const brought = await restart().bring(pod, signal)
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
  const brought = await restart().bring(pod, signal)
  assert.ok('failures' in brought)
  const failed = (volume: string, why: string): string => `MountVolume.SetUp failed for volume "${volume}" : ${why}`
  assert.deepEqual([...brought.failures].sort(), [
    failed('a', 'configmap "absent" not found'),
    failed('b', 'secret "absent" not found'),
    failed('c', 'configmap references non-existent config key: nope'),
    failed('d', 'hostPath type check failed: /nosuchdir is not a directory'),
    failed('e', '[secret "s1" not found, configmap "cm1" not found]'),
    failed('f', 'volumes of type nfs are not supported by this kubelet'),
    failed('g', 'medium HugePages: hugePages storage requested, but there is no resource request for huge pages'),
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

test('claims lead to what is on the node, of the node or mounted for the pod', async (t) => {
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
  const brought = await restart().bring(
    podWith([claimVolume('a', { readOnly: true }), claimVolume('b'), ephemeral]),
    signal,
  )
  assert.ok('mounts' in brought, JSON.stringify(brought))
  const dir = `${root}/pods/u1/volumes/kubernetes.io~local-volume`
  assert.deepEqual(
    [...brought.mounts].map(([name, { hostPath, readOnly }]) => `${name} ${hostPath} ${readOnly}`).sort(),
    [`a ${root} true`, `b ${dir}/pv-b false`, `c ${dir}/pv-c false`],
  )
  assert.deepEqual(
    mounter.asked.map(({ source, options }) => `${source.slice(root.length)} ${options.join(',')}`).sort(),
    ['/disk1 bind', '/disk1 bind,noatime'],
  )
})

test('claims that are not ready are said all at once, in upstream’s words', async (t) => {
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
  const brought = await restart().bring(podWith(volumes), signal)
  assert.ok('failures' in brought)
  const names = '[absent eph odd pending raw]'
  const [text = ''] = brought.failures
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
  assert.equal(brought.failures.length, 1)
})

test('volumes that are elsewhere, gone or of no kind we have say so', async (t) => {
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
    .set('pv-c', persistentVolume('pv-c', 'c', { capacity: {}, nfs: { server: 'x', path: '/y' } }))
  const brought = await restart().bring(podWith(['a', 'b', 'c'].map((name) => claimVolume(name))), signal)
  assert.ok('failures' in brought)
  assert.deepEqual([...brought.failures].sort(), [
    'MountVolume.NewMounter initialization failed for volume "pv-a" : path "/nosuch" does not exist',
    'MountVolume.NodeAffinity check failed for volume "pv-b" : no matching NodeSelectorTerms',
    'MountVolume.SetUp failed for volume "pv-c" : volumes of type nfs are not supported by this kubelet',
  ])
})

test('a part of a volume is made if it is missing, mounted once, and never outside', async (t) => {
  const { root, mounter, restart } = await bedIn(t)
  const pod = podWith([{ name: 'e', emptyDir: {} }])
  const keeper = restart()
  const hostPath = await pathOf(keeper, pod, 'e')
  const ask = (subPath: string, index = 0): Promise<string> =>
    keeper.subPath({ uid: 'u1', container: 'c', volume: 'e', index, hostPath, subPath })
  const target = `${root}/pods/u1/volume-subpaths/e/c/0`
  assert.equal(await ask('a/b'), target)
  assert.equal((await stat(join(hostPath, 'a/b'))).mode & 0o7777, 0o777)
  assert.deepEqual(mounter.asked.at(-1)?.options, ['bind'])
  assert.match(mounter.asked.at(-1)?.source ?? '', new RegExp(`^/proc/${process.pid}/fd/\\d+$`))
  await writeFile(join(hostPath, 'file'), 'text')
  assert.ok((await stat(await ask('file', 1))).isFile())
  await symlink('a', join(hostPath, 'inside'))
  await ask('inside/b', 2)
  await symlink('/etc', join(hostPath, 'outside'))
  await symlink('/nosuch', join(hostPath, 'dangling'))
  const prepare = 'failed to prepare subPath for volumeMount "e" of container "c"'
  const create = 'failed to create subPath directory for volumeMount "e" of container "c"'
  await assert.rejects(ask('outside', 3), { message: prepare })
  await assert.rejects(ask('outside/new', 3), { message: create })
  await assert.rejects(ask('dangling', 3), { message: create })
  await assert.rejects(ask('/etc', 3), { message: 'error SubPath `/etc` must not be an absolute path' })
  await assert.rejects(ask('a/../b', 3), { message: "unable to provision SubPath `a/../b`: must not contain '..'" })
  await assert.rejects(access('/etc/new'))
  assert.equal(await keeper.read(hostPath, 'file'), 'text')
  await assert.rejects(keeper.read(hostPath, 'outside/passwd'), /not within volume path/)
  await keeper.leave('u1')
  assert.deepEqual(await mounter.list(), [])
})

test('a pod that is to end waits for no server', async (t) => {
  const { maps, restart } = await bedIn(t)
  const ending = new AbortController()
  maps.get = () => {
    ending.abort()
    return undefined
  }
  const pod = podWith([{ name: 'cm', configMap: { name: 'cm', defaultMode: 0o644 } }])
  assert.deepEqual(await restart().bring(pod, ending.signal), { failures: [] })
})
