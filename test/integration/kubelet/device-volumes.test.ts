import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'

import type { PersistentVolume, PersistentVolumeClaim, Pod } from '#apis/core/v1.ts'
import { createKubeletMeters } from '#kubelet/metrics/kubelet-families.ts'
import { DiskVolumeManager } from '#kubelet/volumes/disk-volume-manager.ts'
import { createMounter } from '#kubelet/volumes/mounts/mounter.ts'
import type { VolumeSources } from '#kubelet/volumes/volume-plugin.ts'
import { realClock } from '#lib/clock.ts'
import { mountsBelow } from '#lib/files/mount-table.ts'
import { createLog } from '#lib/log/log.ts'
import { secureRandom } from '#lib/random.ts'

const mayLoop = process.getuid?.() === 0 && existsSync('/dev/loop-control')
const MEBIBYTE = 1 << 20
const { signal } = new AbortController()

interface Bed extends AsyncDisposable {
  readonly root: string
  readonly device: string
  /** A new instance as after a restart. */
  restart(): DiskVolumeManager
  mountPoints(): Promise<string[]>
}

/** A kubelet's volumes with one local PersistentVolume: a loop device on an empty file. */
async function startBed(local: { readonly fsType?: string } = {}): Promise<Bed> {
  const closing = new AsyncDisposableStack()
  const root = await mkdtemp(join(tmpdir(), 'device-volumes-'))
  closing.defer(() => rm(root, { recursive: true }))
  const file = join(root, 'disk')
  const handle = await open(file, 'w')
  await handle.truncate(64 * MEBIBYTE)
  await handle.close()
  const device = execFileSync('losetup', ['--find', '--show', file], { encoding: 'utf8' }).trim()
  closing.defer(() => void execFileSync('losetup', ['--detach', device]))
  const mounter = createMounter()
  const mountPoints = async (): Promise<string[]> => mountsBelow(await mounter.list(), root).map(({ path }) => path)
  closing.defer(async () => {
    for (const path of await mountPoints()) await mounter.unmount(path)
  })
  const claim = { metadata: { uid: 'c1' }, spec: { volumeName: 'pv' }, status: { phase: 'Bound' } }
  const persistent = { metadata: { name: 'pv' }, spec: { claimRef: { uid: 'c1' }, local: { path: device, ...local } } }
  const sources: Partial<VolumeSources> = {
    claim: async () => claim as unknown as PersistentVolumeClaim,
    persistentVolume: async () => persistent as unknown as PersistentVolume,
    node: () => undefined,
  }
  const { logger: log } = createLog({ stream: { write: (_, done) => done() }, clock: realClock })
  const tools = { clock: realClock, random: secureRandom, log, mounter, meters: createKubeletMeters() }
  const onUnmounted = (): void => undefined
  const restart = (): DiskVolumeManager =>
    new DiskVolumeManager({ rootDir: root, ...tools, sources: sources as VolumeSources, onUnmounted })
  return { root, device, restart, mountPoints, [Symbol.asyncDispose]: () => closing.disposeAsync() }
}

function podOf(uid: string, readOnly = false): Pod {
  const containers = [{ name: 'c', volumeMounts: [{ name: 'v', mountPath: '/v' }] }]
  const volumes = [{ name: 'v', persistentVolumeClaim: { claimName: 'data', readOnly } }]
  const spec = { containers, volumes, securityContext: { fsGroup: 3000 } }
  return { metadata: { namespace: 'default', name: uid, uid }, spec } as unknown as Pod
}

async function pathOf(keeper: DiskVolumeManager, pod: Pod): Promise<string> {
  const mounted = await keeper.mount(pod, signal)
  assert.ok('mounts' in mounted, JSON.stringify(mounted))
  return mounted.mounts.get('v')?.hostPath ?? ''
}

const typeOf = (device: string): string =>
  execFileSync('blkid', ['-p', '-s', 'TYPE', '-o', 'value', device], { encoding: 'utf8' }).trim()

describe('a local volume on a block device', { skip: mayLoop ? false : 'only root may use loop devices' }, () => {
  it('is formatted once, shared by pods and unmounted after the last of them', async () => {
    await using bed = await startBed()
    const keeper = bed.restart()
    const path = await pathOf(keeper, podOf('u1'))
    assert.equal(path, `${bed.root}/pods/u1/volumes/kubernetes.io~local-volume/pv`)
    assert.equal(typeOf(bed.device), 'ext4')
    assert.equal((await stat(path)).gid, 3000)
    await writeFile(join(path, 'kept'), 'by the first')
    const second = await pathOf(keeper, podOf('u2'))
    assert.equal(await readFile(join(second, 'kept'), 'utf8'), 'by the first')
    await keeper.unmount('u1')
    const global = `${bed.root}/plugins/kubernetes.io/local-volume/mounts/pv`
    assert.deepEqual((await bed.mountPoints()).toSorted(), [global, second].toSorted())
    await keeper.unmount('u2')
    assert.deepEqual(await bed.mountPoints(), [])
    const again = await pathOf(bed.restart(), podOf('u3'))
    assert.equal(await readFile(join(again, 'kept'), 'utf8'), 'by the first')
  })

  it('keeps data that another program has written to the device', async () => {
    await using bed = await startBed()
    execFileSync('mkswap', [bed.device])
    const mounted = await bed.restart().mount(podOf('u1'), signal)
    assert.ok('failures' in mounted)
    assert.match(mounted.failures[0] ?? '', /^MountVolume\.MountDevice failed for volume "pv" : local: failed to mount/)
    assert.equal(typeOf(bed.device), 'swap')
    assert.deepEqual(await bed.mountPoints(), [])
  })

  it('is not formatted for a pod that only reads it', async () => {
    await using bed = await startBed()
    const mounted = await bed.restart().mount(podOf('u1', true), signal)
    assert.match('failures' in mounted ? (mounted.failures[0] ?? '') : '', /cannot mount unformatted disk/)
    assert.throws(() => typeOf(bed.device))
  })
})
