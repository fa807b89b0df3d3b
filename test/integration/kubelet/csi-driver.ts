/** A CSI driver for tests: serves CSI on a socket in the plugin directory, and bind-mounts its directories. */
import { execFile } from 'node:child_process'
import { mkdir, rm, rmdir, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { Registration, type RegistrationStatus } from '#apis/wire/plugin-registration.ts'
import {
  type ExpandRequest,
  NODE_METHODS,
  type PublishRequest,
  type StageRequest,
} from '#kubelet/volumes/csi/csi-node-service.ts'
import { realClock } from '#lib/clock.ts'
import { createGrpcServer, type Handler, handleUnary } from '#lib/grpc/server.ts'
import { GrpcError } from '#lib/grpc/status.ts'

const run = promisify(execFile)

export interface CsiDriverOptions {
  readonly name: string
  /** Directory of its volumes. */
  readonly dir: string
  /** `plugins_registry`. */
  readonly registry: string
  readonly capabilities: readonly number[]
  readonly versions?: readonly string[]
  readonly maxVolumes?: number
  readonly topology?: Readonly<Record<string, string>>
}

export interface CsiDriver extends AsyncDisposable {
  /** Calls in order: `stage v1`, `publish v1`, …. */
  readonly calls: string[]
  readonly staged: StageRequest[]
  readonly published: PublishRequest[]
  readonly expanded: ExpandRequest[]
  readonly told: RegistrationStatus[]
  /** While set, the call fails with this error. */
  readonly faults: Map<string, GrpcError>
  maxVolumes: number
  /** Reported usage of its volumes. */
  isIll: boolean
}

export async function startCsiDriver(options: CsiDriverOptions): Promise<CsiDriver> {
  const { name, registry, maxVolumes = 0 } = options
  const path = join(registry, `${name}-reg.sock`)
  const driver: CsiDriver = {
    calls: [],
    staged: [],
    published: [],
    expanded: [],
    told: [],
    faults: new Map(),
    maxVolumes,
    isIll: false,
    async [Symbol.asyncDispose]() {
      await server.stop(0)
      await rm(path, { force: true })
    },
  }
  const handlers = [...introductions(options, driver), ...volumes(options, driver)]
  const server = createGrpcServer({ handlers, clock: realClock })
  await mkdir(registry, { recursive: true })
  await server.listen({ path })
  return driver
}

function introductions(options: CsiDriverOptions, driver: CsiDriver): Handler[] {
  const { name, capabilities, versions = ['1.0.0'], topology } = options
  return [
    handleUnary(Registration.getInfo, () => ({
      type: 'CSIPlugin',
      name,
      endpoint: '',
      supportedVersions: [...versions],
    })),
    handleUnary(Registration.notifyRegistrationStatus, (status) => {
      driver.told.push(status)
      return {}
    }),
    handleUnary(NODE_METHODS.getInfo, () => ({
      nodeId: `${name}-node`,
      maxVolumesPerNode: driver.maxVolumes,
      ...(topology !== undefined && { accessibleTopology: { segments: new Map(Object.entries(topology)) } }),
    })),
    handleUnary(NODE_METHODS.getCapabilities, () => ({
      capabilities: capabilities.map((type) => ({ rpc: { type } })),
    })),
  ]
}

function volumes({ dir }: CsiDriverOptions, driver: CsiDriver): Handler[] {
  const called = (call: string, id: string): void => {
    driver.calls.push(`${call} ${id}`)
    const fault = driver.faults.get(call)
    if (fault !== undefined) throw fault
  }
  return [
    handleUnary(NODE_METHODS.stage, async (request) => {
      const { volumeId, volumeCapability, stagingTargetPath } = request
      called('stage', volumeId)
      driver.staged.push(request)
      if (volumeCapability?.block === undefined) await bind(join(dir, volumeId), stagingTargetPath)
      return {}
    }),
    handleUnary(NODE_METHODS.unstage, async ({ volumeId, stagingTargetPath }) => {
      called('unstage', volumeId)
      await unbind(stagingTargetPath)
      return {}
    }),
    handleUnary(NODE_METHODS.publish, async (request) => {
      const { targetPath, volumeId, volumeCapability } = request
      called('publish', volumeId)
      driver.published.push(request)
      if (volumeCapability?.block === undefined) await bind(join(dir, volumeId), targetPath)
      else await writeFile(targetPath, 'a device')
      return {}
    }),
    handleUnary(NODE_METHODS.unpublish, async ({ volumeId, targetPath }) => {
      called('unpublish', volumeId)
      await unbind(targetPath)
      await rm(targetPath, { force: true, recursive: true })
      return {}
    }),
    handleUnary(NODE_METHODS.expand, (request) => {
      called('expand', request.volumeId)
      driver.expanded.push(request)
      return { capacityBytes: request.capacityRange?.requiredBytes ?? 0 }
    }),
    handleUnary(NODE_METHODS.getStats, async ({ volumeId, volumePath }) => {
      called('stats', volumeId)
      if (!(await isMounted(volumePath))) throw new GrpcError('notFound', `nothing is published at ${volumePath}`)
      return { usage: await usageAt(volumePath), volumeCondition: { abnormal: driver.isIll, message: '' } }
    }),
  ]
}

/** Bytes and inodes. */
async function usageAt(
  path: string,
): Promise<{ readonly available: number; readonly total: number; readonly used: number; readonly unit: number }[]> {
  const { blocks, bavail, bfree, bsize, files, ffree } = await statfs(path)
  return [
    { available: bavail * bsize, total: blocks * bsize, used: (blocks - bfree) * bsize, unit: 1 },
    { available: ffree, total: files, used: files - ffree, unit: 2 },
  ]
}

async function bind(from: string, to: string): Promise<void> {
  await mkdir(from, { recursive: true })
  await mkdir(to, { recursive: true })
  if (!(await isMounted(to))) await run('mount', ['--bind', from, to])
}

async function unbind(path: string): Promise<void> {
  while (await isMounted(path)) await run('umount', [path])
  await rmdir(path).catch(() => undefined)
}

const isMounted = (path: string): Promise<boolean> =>
  run('mountpoint', ['-q', path]).then(
    () => true,
    () => false,
  )
