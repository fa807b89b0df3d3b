/** Finds the mounted cgroup hierarchies, v1 or v2, and creates the objects that manage the kubelet's cgroups in them. */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log/log.ts'

import type { Machine } from '../machine/machine.ts'
import type { Reserved } from '../node/allocatable.ts'
import type { PodFacts } from '../pod/pod-of-node.ts'
import { cgroupTree } from './cgroup-tree.ts'
import { type Cgroups, createNodeCgroups, type Enforced } from './node-cgroups.ts'
import { createPodCgroups } from './pod-cgroups.ts'
import { type SliceManager, slices } from './systemd-slices.ts'

export interface CgroupsOptions {
  readonly machine: Pick<Machine, 'cgroupVersion' | 'capacity' | 'maxPids'>
  readonly facts: Pick<PodFacts, 'cgroupDriver' | 'cgroupRoot' | 'pidsLimit' | 'cfsPeriodUs'>
  readonly clock: Clock
  readonly log: Logger
  /** Default: limit pods to node allocatable. */
  readonly enforced?: Enforced
  /** Default: none. */
  readonly reserved?: Reserved
  /** Set for the cgroup driver systemd. */
  readonly systemd?: SliceManager
}

export function openCgroups(options: CgroupsOptions): Cgroups {
  const { machine, facts, clock, log, enforced = {}, reserved = {} } = options
  const files = cgroupTree('/sys/fs/cgroup', machine.cgroupVersion)
  const tree = options.systemd === undefined ? files : slices(files, options.systemd)
  const { maxPids } = machine
  const capacity = { ...machine.capacity, ...(maxPids !== undefined && { pid: String(maxPids) }) }
  return {
    pods: createPodCgroups({ tree, facts, clock }),
    node: createNodeCgroups({ tree, facts, capacity, reserved, enforced, clock, log }),
  }
}
