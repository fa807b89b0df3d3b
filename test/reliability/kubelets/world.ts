/**
 * Tracks the pods of a test, and their processes, mounts and files on the machine. A killed kubelet must keep those of
 * running pods and remove those of deleted pods.
 */
import { existsSync, readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { join } from 'node:path'

import type { Pod } from '#apis/core/v1.ts'
import { realClock, sleep } from '#lib/clock.ts'
import { mountsBelow, readMountTable } from '#lib/files/mount-table.ts'

import { tracesOf } from '../../integration/kubelet/containerd-bed.ts'
import type { KubeletBed } from '../../upstream/kubelet-bed.ts'

const PODS = '/api/v1/namespaces/default/pods'
const PATIENCE_MS = 90_000

export class World {
  readonly #bed: KubeletBed

  constructor(bed: KubeletBed) {
    this.#bed = bed
  }

  make(name: string, spec: object, metadata: object = {}): Promise<Pod> {
    const whole = { nodeName: this.#bed.node, automountServiceAccountToken: false, ...spec }
    return this.#bed.ask('POST', PODS, { metadata: { name, labels: { app: name }, ...metadata }, spec: whole })
  }

  async pods(): Promise<Pod[]> {
    return (await this.#bed.ask<{ items: Pod[] }>('GET', PODS)).items
  }

  async pod(name: string): Promise<Pod | undefined> {
    return (await this.pods()).find(({ metadata }) => metadata.name === name)
  }

  async remove(name: string, seconds?: number): Promise<void> {
    const query = seconds === undefined ? '' : `?gracePeriodSeconds=${seconds}`
    await this.#bed.ask('DELETE', `${PODS}/${name}${query}`).catch((error: Error) => {
      if (!error.message.includes(' 404 ')) throw error
    })
  }

  /** Throws with what there was at last. */
  async until(what: string, isSo: (pods: readonly Pod[]) => boolean): Promise<readonly Pod[]> {
    for (let waitedMs = 0; ; waitedMs += 200) {
      const pods = await this.pods()
      if (isSo(pods)) return pods
      if (waitedMs >= PATIENCE_MS) throw new Error(`Waited in vain for ${what}:\n${pods.map(briefOf).join('\n')}`)
      await sleep(realClock, 200)
    }
  }

  /** Everybody goes, and nothing stays. Returns what stayed. */
  async removeAll(rootDirs: readonly string[]): Promise<string[]> {
    for (const { metadata } of await this.pods()) await this.remove(metadata.name ?? '')
    await this.until('all pods to be gone', (pods) => pods.length === 0)
    let left: string[] = []
    // Periodic cleanup takes at most a minute.
    for (let waitedMs = 0; waitedMs < 150_000; waitedMs += 1000) {
      left = await this.leftovers(rootDirs)
      if (left.length === 0) break
      await sleep(realClock, 1000)
    }
    return left
  }

  /** Sandboxes, addresses, namespaces, links, mounts, cgroups, folders and logs of pods that are no more. */
  async leftovers(rootDirs: readonly string[]): Promise<string[]> {
    const { containerd, machine } = this.#bed
    const { places } = machine
    const { items } = await containerd.runtime.listPodSandbox({})
    const { containers } = await containerd.runtime.listContainers({})
    const traces = await tracesOf(machine)
    const shims = (traces['processes'] ?? []).flatMap((pid) => {
      const said = existsSync(`/proc/${pid}/cmdline`) ? readFileSync(`/proc/${pid}/cmdline`, 'utf8') : ''
      return said === '' || said.includes('--config') ? [] : [`process ${pid} ${said.replaceAll('\0', ' ')}`]
    })
    const mounts = mountsBelow(await readMountTable(), places.stateFolder, ...rootDirs).map(({ path }) => path)
    const logs = rootDirs.map((folder) => `${folder}-logs`)
    return [
      ...items.map(({ id }) => `sandbox ${id}`),
      ...containers.map(({ id }) => `container ${id}`),
      ...shims,
      ...mounts.filter((path) => !rootDirs.includes(path)).map((path) => `mount ${path}`),
      ...attached(places.network).map((name) => `link ${name}`),
      ...namesBelow(join(places.addressFolder, places.network), /^\d/).map((name) => `address ${name}`),
      ...namesBelow(join(places.stateFolder, 'netns')).map((name) => `network namespace ${name}`),
      ...podCgroups(places.cgroupParent),
      ...rootDirs.flatMap((folder) => namesBelow(join(folder, 'pods')).map((name) => `folder of pod ${name}`)),
      ...logs.flatMap((folder) => namesBelow(folder).map((name) => `logs ${name}`)),
      ...deadLinks('/var/log/containers', logs),
    ]
  }
}

function namesBelow(folder: string, pattern = /./): string[] {
  return existsSync(folder) ? readdirSync(folder).filter((name) => pattern.test(name)) : []
}

function attached(bridge: string): string[] {
  return namesBelow(`/sys/class/net/${bridge}/brif`)
}

function podCgroups(parent: string): string[] {
  const below = (folder: string): string[] =>
    existsSync(folder)
      ? readdirSync(folder, { withFileTypes: true })
          .filter((entry) => entry.isDirectory())
          .flatMap(({ name }) => [...(/pod\w{8}/.test(name) ? [join(folder, name)] : []), ...below(join(folder, name))])
      : []
  return ['.', ...readdirSync('/sys/fs/cgroup')]
    .map((name) => join('/sys/fs/cgroup', name, parent))
    .flatMap(below)
    .map((path) => `cgroup ${path}`)
}

function deadLinks(folder: string, logs: readonly string[]): string[] {
  return namesBelow(folder).flatMap((name) => {
    const target = readlinkSync(join(folder, name))
    return logs.some((path) => target.startsWith(`${path}/`)) ? [`link ${name}`] : []
  })
}

/** All that a fault must not change. */
export function faceOf({ metadata, status }: Pod): string {
  const all = [...(status.initContainerStatuses ?? []), ...(status.containerStatuses ?? [])]
  const containers = all.map(({ name, containerID = '', restartCount, state, ready }) => {
    return [name, containerID.slice(-12), restartCount, Object.keys(state ?? {}).join(), ready].join(' ')
  })
  return [metadata.name, metadata.uid, status.phase, status.podIP ?? '', ...containers].join('; ')
}

function briefOf(pod: Pod): string {
  return `${faceOf(pod)} ${JSON.stringify(pod.metadata.deletionTimestamp ?? '')}`
}

export function isReady({ status }: Pod): boolean {
  return status.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false
}
