/** Tests volumes with real mounts and a node's permissions at a real API server. Nothing stays mounted. */
import assert from 'node:assert/strict'
import { access, mkdir, mkdtemp, readdir, readFile, rm, stat, statfs, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { Worker } from 'node:worker_threads'

import {
  ConfigMaps,
  type Node,
  PersistentVolumeClaims,
  PersistentVolumes,
  type Pod,
  Pods,
  type PodSpec,
  Secrets,
  ServiceAccounts,
} from '#apis/core/v1.ts'
import { ApiClient } from '#client/api-client.ts'
import { createPodObjects } from '#kubelet/object-cache.ts'
import { createVolumeManager } from '#kubelet/volumes/create-volume-manager.ts'
import { createMounter, type Mounter } from '#kubelet/volumes/mounts/mounter.ts'
import { openResolved } from '#kubelet/volumes/mounts/sub-path.ts'
import { pathOf } from '#kubelet/volumes/safe-files.ts'
import type { MountResult, VolumeManager } from '#kubelet/volumes/volume-manager.ts'
import { realClock } from '#lib/clock.ts'
import { mountsBelow } from '#lib/files/mount-table.ts'
import { createLog } from '#lib/log/log.ts'
import { secureRandom } from '#lib/random.ts'
import { startControlPlane } from '#testing/control-plane.ts'

const NODE = { metadata: { name: 'node1' }, status: { allocatable: { memory: '64Mi', cpu: '1' } } } as unknown as Node

interface Bed extends AsyncDisposable {
  readonly root: string
  readonly mounter: Mounter
  readonly admin: ApiClient
  /** A new instance as after a restart. */
  restart(): VolumeManager
  makePod(spec: Partial<PodSpec>): Promise<Pod>
}

async function startBed(): Promise<Bed> {
  const closing = new AsyncDisposableStack()
  const plane = closing.use(await startControlPlane())
  const root = await mkdtemp(join(tmpdir(), 'volumes-'))
  const mounter = createMounter()
  closing.defer(async () => {
    for (const { path } of mountsBelow(await mounter.list(), root)) await mounter.unmount(path)
    await rm(root, { recursive: true })
  })
  const clientAs = (name: string, ...groups: string[]): ApiClient => {
    const user = { name, uid: '', groups: [...groups, 'system:authenticated'], extra: {} }
    return new ApiClient({ transport: plane.running.server.clientAs(user), clock: realClock, userAgent: 'test' })
  }
  const admin = clientAs('admin', 'system:masters')
  await admin.create(ServiceAccounts, { metadata: { namespace: 'default', name: 'default' } }).catch(() => undefined)
  const client = clientAs('system:node:node1', 'system:nodes')
  let made = 0
  const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock: realClock })
  const stop = new AbortController()
  closing.defer(() => stop.abort())
  return {
    root,
    mounter,
    admin,
    restart: () =>
      createVolumeManager({
        client,
        objects: createPodObjects({ client, random: secureRandom, signal: stop.signal }),
        clock: realClock,
        random: secureRandom,
        log,
        node: () => NODE,
        recordEvent: () => undefined,
        facts: { rootDir: root, memoryBytes: 1 << 26 },
        mounter,
      }),
    makePod: ({ volumes = [], ...spec }) => {
      const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/m/${name}` }))
      return admin.create(Pods, {
        metadata: { namespace: 'default', name: `p${++made}` },
        spec: {
          nodeName: 'node1',
          containers: [{ name: 'c', image: 'x', resources: {}, volumeMounts }],
          volumes,
          ...spec,
        },
      })
    },
    [Symbol.asyncDispose]: () => closing.disposeAsync(),
  }
}

const { signal } = new AbortController()

function mountsIn(mounted: MountResult): Map<string, string> {
  assert.ok('mounts' in mounted, JSON.stringify(mounted))
  return new Map([...mounted.mounts].map(([name, { hostPath }]) => [name, hostPath]))
}

const mayMount = process.getuid?.() === 0

describe('volumes on the disk of a node', { skip: mayMount ? false : 'only root may mount' }, () => {
  it('contain data of the API, in memory for Secrets, are updated, and are removed with the pod', async () => {
    await using bed = await startBed()
    const { admin, mounter, root } = bed
    await admin.create(ConfigMaps, { metadata: { namespace: 'default', name: 'cm' }, data: { a: '1' } })
    await admin.create(Secrets, { metadata: { namespace: 'default', name: 's' }, data: { k: 'aHVzaA==' } })
    const pod = await bed.makePod({
      volumes: [
        { name: 'cm', configMap: { name: 'cm' } },
        { name: 's', secret: { secretName: 's' } },
        { name: 'fast', emptyDir: { medium: 'Memory', sizeLimit: '1Mi' } },
        { name: 'disk', emptyDir: {} },
      ],
      securityContext: { fsGroup: 2000 },
    })
    const { uid = '' } = pod.metadata
    const keeper = bed.restart()
    const mounts = mountsIn(await keeper.mount(pod, signal))
    const [account = ''] = [...mounts.keys()].filter((name) => name.startsWith('kube-api-access-'))
    const at = (name: string): string => mounts.get(name) ?? ''
    const token = await readFile(join(at(account), 'token'), 'utf8')
    const claims = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>
    assert.deepEqual((claims['kubernetes.io'] as Record<string, unknown>)['pod'], { name: pod.metadata.name, uid })
    assert.equal(await readFile(join(at('s'), 'k'), 'utf8'), 'hush')
    const types = new Map((await mounter.list()).map(({ path, type }) => [path, type]))
    assert.deepEqual(
      ['cm', 's', account, 'fast', 'disk'].map((name) => types.get(at(name))),
      [undefined, 'tmpfs', 'tmpfs', 'tmpfs', undefined],
    )
    const { blocks, bsize } = await statfs(at('fast'))
    assert.equal(blocks * bsize, 1 << 20)
    const modeOf = async (path: string): Promise<string> => {
      const { mode, gid } = await stat(path)
      return `${(mode & 0o7777).toString(8)} ${gid}`
    }
    assert.equal(await modeOf(at('disk')), '2777 2000')
    assert.equal(await modeOf(at('fast')), '3777 2000')
    assert.equal(await modeOf(join(at(account), 'token')), '640 2000')
    assert.equal(await modeOf(join(at('cm'), 'a')), '644 2000')

    await admin.patch(ConfigMaps, { namespace: 'default', name: 'cm' }, { type: 'merge', value: { data: { a: '2' } } })
    const again = bed.restart()
    await writeFile(join(at('fast'), 'mine'), 'kept')
    await until(async () => {
      await again.mount(pod, signal)
      return (await readFile(join(at('cm'), 'a'), 'utf8')) === '2'
    })
    assert.equal(await readFile(join(at('fast'), 'mine'), 'utf8'), 'kept')
    assert.deepEqual(await again.uids(), [uid])
    await again.unmount(uid)
    assert.deepEqual(mountsBelow(await mounter.list(), root), [])
    await assert.rejects(access(`${root}/pods/${uid}`))
  })

  it('report an error if they are full, and keep their previous content', async () => {
    await using bed = await startBed()
    const { admin, mounter, root } = bed
    const data = (size: number): Record<string, string> => ({ a: 'x'.repeat(size) })
    await admin.create(ConfigMaps, { metadata: { namespace: 'default', name: 'cm' }, data: data(1000) })
    await mounter.mount({ source: 'tmpfs', target: root, type: 'tmpfs', options: ['size=128k'] })
    const pod = await bed.makePod({
      volumes: [{ name: 'cm', configMap: { name: 'cm' } }],
      automountServiceAccountToken: false,
    })
    const dir = mountsIn(await bed.restart().mount(pod, signal)).get('cm') ?? ''
    const value = { data: data(500_000) }
    await admin.patch(ConfigMaps, { namespace: 'default', name: 'cm' }, { type: 'merge', value })
    const mounted = await bed.restart().mount(pod, signal)
    assert.ok('failures' in mounted)
    assert.match(
      mounted.failures[0] ?? '',
      /^MountVolume\.SetUp failed for volume "cm" : ENOSPC: no space left on device/,
    )
    assert.equal((await readFile(join(dir, 'a'))).length, 1000)
  })

  it('confine subPaths, even if a container swaps links during the mount', { timeout: 300_000 }, async () => {
    await using bed = await startBed()
    const { root, mounter } = bed
    const outside = join(root, 'outside')
    await mkdir(outside)
    await writeFile(join(outside, 'secret'), '')
    const pod = await bed.makePod({ volumes: [{ name: 'e', emptyDir: {} }], automountServiceAccountToken: false })
    const { uid = '' } = pod.metadata
    const keeper = bed.restart()
    const hostPath = mountsIn(await keeper.mount(pod, signal)).get('e') ?? ''
    await mkdir(join(hostPath, 'd'))
    const attack = `
      const fs = require('node:fs'), { workerData: { hostPath, outside } } = require('node:worker_threads')
      const at = (name) => hostPath + '/' + name
      const attempt = (work) => { try { work(); return true } catch { return false } }
      for (;;) {
        attempt(() => fs.renameSync(at('d'), at('d2')))
        attempt(() => fs.symlinkSync(outside, at('d')))
        // The kubelet may have made a directory there.
        if (!attempt(() => fs.unlinkSync(at('d')))) attempt(() => fs.rmSync(at('d'), { recursive: true }))
        attempt(() => fs.renameSync(at('d2'), at('d')))
      }`
    const attacker = new Worker(attack, { eval: true, workerData: { hostPath, outside } })
    const seen = { inside: 0, refused: 0 }
    try {
      for (let count = 0; count < TRIES; count++) {
        const found = await openResolved(hostPath, 'd').catch(() => undefined)
        if (found === undefined) seen.refused++
        else {
          assert.ok(!(await readdir(pathOf(found))).includes('secret'), 'outside was opened')
          seen.inside++
          await found.close()
        }
      }
      for (let index = 0; index < MOUNTS; index++) {
        const ask = { uid, container: 'c', volume: 'e', index, hostPath }
        await keeper.subPath({ ...ask, subPath: `d/made${index}` }).catch(() => undefined)
        const target = await keeper.subPath({ ...ask, subPath: 'd' }).catch(() => undefined)
        if (target !== undefined) assert.deepEqual((await readdir(target)).includes('secret'), false)
      }
    } finally {
      await attacker.terminate()
    }
    assert.deepEqual(await readdir(outside), ['secret'])
    assert.ok(seen.inside > 0 && seen.refused > 0, JSON.stringify(seen))
    await keeper.unmount(uid)
    assert.deepEqual(mountsBelow(await mounter.list(), root), [])
    assert.deepEqual(await readdir(outside), ['secret'])
  })

  it('of claims are owned by fsGroup from the first pod on, and outlive the pod', async () => {
    await using bed = await startBed()
    const { admin, root, mounter } = bed
    const disk = join(root, 'disk')
    await mkdir(disk)
    await writeFile(join(disk, 'old'), '', { mode: 0o600 })
    await symlink('/etc/hostname', join(disk, 'link'))
    const claim = await admin.create(PersistentVolumeClaims, {
      metadata: { namespace: 'default', name: 'data' },
      spec: {
        accessModes: ['ReadWriteMany'],
        resources: { requests: { storage: '1Gi' } },
        volumeName: 'pv',
        storageClassName: '',
      },
    })
    const { uid: claimUid = '' } = claim.metadata
    await admin.create(PersistentVolumes, {
      metadata: { name: 'pv' },
      spec: {
        capacity: { storage: '1Gi' },
        accessModes: ['ReadWriteMany'],
        claimRef: { kind: 'PersistentVolumeClaim', namespace: 'default', name: 'data', uid: claimUid },
        local: { path: disk },
        nodeAffinity: {
          required: {
            nodeSelectorTerms: [{ matchFields: [{ key: 'metadata.name', operator: 'In', values: ['node1'] }] }],
          },
        },
      },
    })
    const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data' } }]
    const more = { volumes, automountServiceAccountToken: false }
    const first = await bed.makePod({ ...more, securityContext: { fsGroup: 3000 } })
    const keeper = bed.restart()
    assert.deepEqual(await keeper.mount(first, signal), {
      failures: [
        'Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[], failed to process volumes=[v]: error processing PVC default/data: PVC is not bound',
      ],
    })
    await admin.updateStatus(PersistentVolumeClaims, { ...claim, status: { phase: 'Bound' } })
    const path = mountsIn(await keeper.mount(first, signal)).get('v') ?? ''
    assert.equal(path, `${root}/pods/${first.metadata.uid}/volumes/kubernetes.io~local-volume/pv`)
    const { mode, gid } = await stat(join(disk, 'old'))
    assert.deepEqual([mode & 0o7777, gid], [0o660, 3000])
    assert.equal((await stat(disk)).mode & 0o7777, 0o2775)
    assert.equal((await stat('/etc/hostname')).gid, 0)
    const second = await bed.makePod({ ...more, securityContext: { fsGroup: 4000 } })
    await keeper.mount(second, signal)
    assert.equal((await stat(disk)).gid, 3000)
    for (const { metadata } of [first, second]) await keeper.unmount(metadata.uid ?? '')
    assert.deepEqual(mountsBelow(await mounter.list(), root), [])
    await access(join(disk, 'old'))
  })
})

const TRIES = 10_000
const MOUNTS = 50

/** Events of the API server take a moment. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => setImmediate(resolve))
}
