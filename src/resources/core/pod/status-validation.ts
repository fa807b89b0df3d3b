/** The rules of what is told of a pod, in upstream's order. */
import type { Container, ContainerStatus, Pod, PodCondition, PodSpec } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go-text.ts'
import { firstByKey } from '#lib/repetition.ts'
import { canonicalIp, validateLegacyIp } from '#meta/validation/addresses.ts'
import {
  asJson,
  child,
  duplicate,
  type FieldError,
  forbidden,
  index,
  invalid,
  notSupported,
  required,
  tooLong,
} from '#meta/validation/field-error.ts'
import { dns1123Subdomain, userId } from '#meta/validation/names.ts'
import { complaining, immutable } from '#meta/validation/rules.ts'
import { validateQualifiedName } from '#model/pod-spec/checks.ts'
import { podOptions } from '#model/pod-spec/options.ts'
import type { PodOptions } from '#model/pod-spec/rules.ts'
import { allMayRestart, shouldRestart } from '#model/pods.ts'

import { validateClaimStatuses } from './claim-statuses.ts'
import { validateAnnotationUpdate } from './update.ts'

export function validateStatusUpdate(next: Pod, old: Pod, context: RuleContext): FieldError[] {
  const options = podOptions(context, old)
  const { status } = next
  const generation = status.observedGeneration ?? 0
  return [
    ...validateAnnotationUpdate(next, old, options),
    ...validateConditions('status.conditions', status.conditions),
    ...validateNominated(next, old, context),
    ...(generation < 0 ? [invalid('status.observedGeneration', generation, 'must be a non-negative integer')] : []),
    ...immutable('status.qosClass', status.qosClass ?? '', old.status.qosClass ?? ''),
    ...validateTransitions(next, old, options),
    ...validateClaimStatuses(next),
    ...validateIps(next, old, 'podIPs', options),
    ...validateHostIp(next),
    ...validateIps(next, old, 'hostIPs', options),
    ...statusLists.flatMap(([name]) => validateUsers(child('status', name), status[name], next.spec)),
    ...validateAllocated(child('status', 'containerStatuses'), status.containerStatuses, next.spec.containers),
    ...validateAllocated(
      child('status', 'initContainerStatuses'),
      status.initContainerStatuses,
      next.spec.initContainers,
    ),
    ...(status.ephemeralContainerStatuses ?? []).flatMap(({ allocatedResourcesStatus = [] }, at) => {
      if (allocatedResourcesStatus.length === 0) return []
      const field = child(index('status.ephemeralContainerStatuses', at), 'allocatedResourcesStatus')
      return [forbidden(field, 'must not be specified in container status')]
    }),
    ...(options.imageVolumeStatus
      ? statusLists.flatMap(([name]) => validateImageVolumes(child('status', name), status[name]))
      : []),
  ]
}

const statusLists = [
  ['containerStatuses', 'containers'],
  ['initContainerStatuses', 'initContainers'],
  ['ephemeralContainerStatuses', 'ephemeralContainers'],
] as const

const ownConditions = ['PodScheduled', 'Ready', 'Initialized']

function validateConditions(field: string, conditions: readonly PodCondition[] = []): FieldError[] {
  return conditions.flatMap(({ type, observedGeneration: generation = 0 }, at) => {
    const path = index(field, at)
    const errors =
      generation < 0 ? [invalid(child(path, 'observedGeneration'), generation, 'must be a non-negative integer')] : []
    return ownConditions.includes(type) ? errors : [...errors, ...validateQualifiedName(child(path, 'Type'), type)]
  })
}

function validateNominated(next: Pod, old: Pod, { isEnabled }: RuleContext): FieldError[] {
  const { nominatedNodeName: name = '' } = next.status
  if (name === '' || name === (old.status.nominatedNodeName ?? '')) return []
  const field = 'status.nominatedNodeName'
  const errors = complaining(field, name, dns1123Subdomain(name))
  if ((old.spec.nodeName ?? '') === '' || !isEnabled('ClearingNominatedNodeNameAfterBinding')) return errors
  return [...errors, forbidden(field, 'may not be set on pods that are already bound to a node')]
}

/** What has ended stays so, unless it may start again. */
function validateTransitions(next: Pod, old: Pod, options: PodOptions): FieldError[] {
  const { spec } = old
  const anyMay = options.restartRules && options.restartAllContainers && allMayRestart(spec)
  return statusLists.flatMap(([name, containers]) => {
    const byName = firstByKey<Container, string>(spec[containers] ?? [], (one) => one.name)
    const isRunning = (one: ContainerStatus): boolean => one.state.terminated === undefined
    const running = new Set((next.status[name] ?? []).filter(isRunning).map((one) => one.name))
    const mayRestart = ({ name: container, state }: ContainerStatus): boolean => {
      if (name === 'ephemeralContainerStatuses') return false
      return anyMay || restarts(byName.get(container), spec, state.terminated?.exitCode ?? 0, options)
    }
    return (old.status[name] ?? []).flatMap((before, at) => {
      if (before.state.terminated === undefined) return []
      if (!running.has(before.name) || mayRestart(before)) return []
      const field = child(index(child('status', name), at), 'state')
      return [forbidden(field, 'may not be transitioned to non-terminated state')]
    })
  })
}

function restarts(container: Container | undefined, spec: PodSpec, exitCode: number, options: PodOptions): boolean {
  if (options.restartRules) return container !== undefined && shouldRestart(container, spec, exitCode)
  if (spec.restartPolicy === 'Always' || container?.restartPolicy === 'Always') return true
  return spec.restartPolicy === 'OnFailure' && exitCode !== 0
}

/** Bad ones may stay; at most one of each family. */
function validateIps(next: Pod, old: Pod, name: 'podIPs' | 'hostIPs', { strictIps }: PodOptions): FieldError[] {
  const field = child('status', name)
  const ips = (next.status[name] ?? []).map(({ ip }) => ip)
  const before = (old.status[name] ?? []).map(({ ip }) => ip)
  const errors = ips.flatMap((ip, at) => validateLegacyIp(index(field, at), ip, { strict: strictIps, old: before }))
  if (ips.length < 2) return errors
  const families = new Set(ips.map((ip) => canonicalIp(ip)?.includes(':')))
  if (ips.length === 2 && families.size === 2 && !families.has(undefined)) return errors
  return [...errors, invalid(field, next.status[name], 'may specify no more than one IP for each IP family')]
}

function validateHostIp({ status }: Pod): FieldError[] {
  const first = status.hostIPs?.[0]?.ip
  if (first === undefined || first === (status.hostIP ?? '')) return []
  return [invalid('status.hostIPs[0].ip', first, 'must be equal to `hostIP`')]
}

function validateUsers(field: string, statuses: readonly ContainerStatus[] = [], { os }: PodSpec): FieldError[] {
  return statuses.flatMap(({ user }, at) => {
    const path = child(index(field, at), 'user', 'linux')
    const linux = user?.linux
    if (linux === undefined) return []
    if (os?.name === 'windows') return [forbidden(path, 'cannot be set for a windows pod')]
    const groups = child(path, 'supplementalGroups')
    return [
      ...complaining(child(path, 'uid'), linux.uid, userId(linux.uid)),
      ...complaining(child(path, 'gid'), linux.gid, userId(linux.gid)),
      ...(linux.supplementalGroups ?? []).flatMap((id, group) => complaining(index(groups, group), id, userId(id))),
    ]
  })
}

const MAX_HEALTH_MESSAGE_BYTES = 1024

/** Health of the devices a container has got. */
function validateAllocated(
  field: string,
  statuses: readonly ContainerStatus[] = [],
  containers: readonly Container[] = [],
): FieldError[] {
  const byName = firstByKey(containers, ({ name }) => name)
  return statuses.flatMap((status, at) =>
    (status.allocatedResourcesStatus ?? []).flatMap(({ name, resources = [] }, nth) => {
      const path = index(child(index(field, at), 'allocatedResourcesStatus'), nth)
      const container = byName.get(status.name)
      const ids = new Set<string>()
      return [
        ...(container === undefined ? [] : validateAllocatedName(child(path, 'name'), name, container)),
        ...resources.flatMap(({ resourceID, health = '', message }, resource) => {
          const where = index(child(path, 'resources'), resource)
          const again = ids.has(resourceID) ? [duplicate(child(where, 'resourceID'), asJson(resourceID))] : []
          ids.add(resourceID)
          return [...validateHealth(where, health, message), ...again]
        }),
      ]
    }),
  )
}

function validateAllocatedName(field: string, name: string, { resources }: Container): FieldError[] {
  if (name.startsWith('claim:')) {
    const claims = (resources?.claims ?? []).map((one) => `claim:${one.name}${one.request ? `/${one.request}` : ''}`)
    if (claims.includes(name)) return []
    const form = "in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
    return [invalid(field, asJson(name), `must match one of the container's resource claims ${form}`)]
  }
  if (Object.hasOwn(resources?.requests ?? {}, name)) return []
  return [invalid(field, asJson(name), "must match one of the container's resource requests")]
}

function validateHealth(path: string, health: string, message: string | undefined): FieldError[] {
  const known = ['Healthy', 'Unhealthy', 'Unknown']
  const errors = known.includes(health) ? [] : [notSupported(child(path, 'health'), asJson(health), known)]
  if (message === '') return [...errors, required(child(path, 'message'), 'must be non-empty if specified')]
  if (byteLength(message ?? '') <= MAX_HEALTH_MESSAGE_BYTES) return errors
  return [...errors, tooLong(child(path, 'message'), MAX_HEALTH_MESSAGE_BYTES)]
}

const MAX_IMAGE_REF_BYTES = 256

function validateImageVolumes(field: string, statuses: readonly ContainerStatus[] = []): FieldError[] {
  return statuses.flatMap(({ volumeMounts = [] }, at) =>
    volumeMounts.flatMap(({ volumeStatus }, mount) => {
      const image = volumeStatus?.image
      if (image === undefined) return []
      const place = index(child(index(field, at), 'volumeMounts'), mount)
      const path = child(place, 'volumeStatus', 'imageVolumeStatus', 'imageRef')
      const { imageRef = '' } = image
      if (imageRef === '') return [required(path, 'imageRef must not be empty')]
      return byteLength(imageRef) > MAX_IMAGE_REF_BYTES ? [tooLong(path, MAX_IMAGE_REF_BYTES)] : []
    }),
  )
}
