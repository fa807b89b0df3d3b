/** Creates the dependencies that all pod workers of a node share. */
import { withDeadlines } from '#cri/deadlines.ts'

import { NO_CGROUPS } from '../cgroups/pod-cgroups.ts'
import { STUB_CONTAINER_MANAGER } from '../container-manager/container-manager.ts'
import { createKubeletMeters } from '../metrics/kubelet-families.ts'
import { ProbeCounts } from '../metrics/probe-counts.ts'
import { readObjects } from '../object-cache.ts'
import { createProbeAction } from '../probes/probe-action.ts'
import { createLogFiles } from '../runtime/log-links.ts'
import { Pleg } from '../runtime/pleg.ts'
import type { VolumeManager } from '../volumes/volume-manager.ts'
import { createMemoryAllocations } from './allocations.ts'
import { ImagePuller } from './images/image-puller.ts'
import { NodeAdmission } from './node-admission.ts'
import { createPodFiles } from './pod-files.ts'
import type { PodHost, PodWorkersOptions } from './pod-host.ts'
import { PodRegistry } from './pod-registry.ts'
import { podEvents } from './record-events.ts'

export function createPodHost(options: PodWorkersOptions, signal: AbortSignal): PodHost {
  const { clock, random, log, facts, client, recorder, node, services, providers, traits } = options
  const { containerManager = STUB_CONTAINER_MANAGER, meters = createKubeletMeters(), pulls: limits, records } = options
  const { registry = new PodRegistry(facts.podLogsDir) } = options
  const runtime = withDeadlines(options.runtime, clock, options.runtimeTimeoutMs)
  const recordEvent = podEvents(recorder)
  return {
    runtime,
    clock,
    random,
    log,
    client,
    node,
    facts,
    services,
    registry,
    recordEvent,
    signal,
    ...(providers !== undefined && { providers }),
    volumes: options.volumes ?? NO_VOLUMES,
    cgroups: options.cgroups ?? NO_CGROUPS,
    containerManager,
    allocations: options.allocations ?? createMemoryAllocations(),
    objects: options.objects ?? readObjects(client),
    files: options.files ?? createPodFiles(facts, clock, random),
    runProbe: options.runProbe ?? createProbeAction({ runtime, clock, random }),
    logs: options.logs ?? createLogFiles(facts.podLogsDir, facts.containerLogsDir, clock),
    meters,
    probes: options.probes ?? new ProbeCounts(),
    puller: new ImagePuller({ runtime, clock, meters, limits, records }),
    pleg: new Pleg({ runtime, clock, log, meters }),
    admission: new NodeAdmission({ registry, clock, meters, containerManager, node, traits, recordEvent }),
  }
}

const NO_VOLUMES: VolumeManager = {
  mount: async ({ spec: { volumes = [] } }) =>
    volumes.length === 0
      ? { mounts: new Map() }
      : {
          failures: volumes.map(
            ({ name }) => `MountVolume.SetUp failed for volume "${name}" : volumes are not supported on this node`,
          ),
        },
  subPath: async ({ subPath }) => {
    throw new Error(`failed to prepare subPath "${subPath}": volumes are not supported on this node`)
  },
  read: async () => {
    throw new Error('volumes are not supported on this node')
  },
  unmount: async () => undefined,
  uids: async () => [],
}
