/** The cgroups of a node, where those of its machine are mounted. */
import type { Clock } from '#lib/clock.ts'
import type { Logger } from '#lib/log.ts'

import type { Reserved } from '../allocatable.ts'
import type { KubeletOptions } from '../kubelet-options.ts'
import type { Machine } from '../machine/machine.ts'
import { cgroupTree } from './cgroup-tree.ts'
import { type Cgroups, createNodeCgroups, type Enforced } from './node-cgroups.ts'
import { createPodCgroups } from './pod-cgroups.ts'
import { type SliceKeeper, slices } from './systemd-slices.ts'

export interface CgroupsOptions {
  readonly machine: Pick<Machine, 'cgroupVersion' | 'capacity' | 'maxPids'>
  readonly facts: KubeletOptions['pods']
  readonly clock: Clock
  readonly log: Logger
  /** Default: pods are kept to what is allocatable. */
  readonly enforced?: Enforced
  /** Default: nothing. */
  readonly reserved?: Reserved
  /** For the driver of that name. */
  readonly systemd?: SliceKeeper
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
