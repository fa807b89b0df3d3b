/** Validates the status of a pod, in upstream's order. */
import type { Container, ContainerStatus, Pod, PodCondition, PodSpec } from '#apis/core/v1.ts'
import type { RuleContext } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go/text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { firstByKey } from '#lib/repetition.ts'
import { canonicalIp, validateLegacyIp } from '#meta/validation/addresses.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1123Subdomain, userId } from '#meta/validation/names.ts'
import { immutable, validateQualifiedName } from '#meta/validation/rules.ts'
import { podOptions } from '#model/pod-spec/options.ts'
import type { PodOptions } from '#model/pod-spec/rules.ts'
import { allMayRestart, shouldRestart } from '#model/pods.ts'

import { validateClaimStatuses } from './claim-statuses.ts'
import { validateAnnotationUpdate } from './update.ts'

export function validateStatusUpdate(next: Pod, old: Pod, context: RuleContext): FieldError[] {
  const options = podOptions(context, old)
  const { status } = next
  const generation = status.observedGeneration ?? 0
  return collectErrors(
    validateAnnotationUpdate(next, old, options),
    validateConditions(fieldPath('status.conditions'), status.conditions),
    validateNominated(next, old, context),
    generation < 0 && fieldPath('status.observedGeneration').invalid(generation, 'must be a non-negative integer'),
    immutable(fieldPath('status.qosClass'), status.qosClass ?? '', old.status.qosClass ?? ''),
    validateTransitions(next, old, options),
    validateClaimStatuses(next),
    validateIps(next, old, 'podIPs', options),
    validateHostIp(next),
    validateIps(next, old, 'hostIPs', options),
    statusLists.flatMap(([name]) => validateUsers(fieldPath('status').child(name), status[name], next.spec)),
    validateAllocated(fieldPath('status.containerStatuses'), status.containerStatuses, next.spec.containers),
    validateAllocated(
      fieldPath('status.initContainerStatuses'),
      status.initContainerStatuses,
      next.spec.initContainers,
    ),
    fieldPath('status.ephemeralContainerStatuses').each(
      status.ephemeralContainerStatuses,
      (path, { allocatedResourcesStatus = [] }) => {
        if (allocatedResourcesStatus.length === 0) return []
        const field = path.child('allocatedResourcesStatus')
        return [field.forbidden('must not be specified in container status')]
      },
    ),
    options.imageVolumeStatus &&
      statusLists.flatMap(([name]) => validateImageVolumes(fieldPath('status').child(name), status[name])),
  )
}

const statusLists = [
  ['containerStatuses', 'containers'],
  ['initContainerStatuses', 'initContainers'],
  ['ephemeralContainerStatuses', 'ephemeralContainers'],
] as const

const ownConditions = ['PodScheduled', 'Ready', 'Initialized']

function validateConditions(path: FieldPath, conditions: readonly PodCondition[] = []): FieldError[] {
  return path.each(conditions, (path, { type, observedGeneration: generation = 0 }) => {
    const errors =
      generation < 0 ? [path.child('observedGeneration').invalid(generation, 'must be a non-negative integer')] : []
    return ownConditions.includes(type) ? errors : [...errors, ...validateQualifiedName(path.child('Type'), type)]
  })
}

function validateNominated(next: Pod, old: Pod, { isEnabled }: RuleContext): FieldError[] {
  const { nominatedNodeName: name = '' } = next.status
  if (name === '' || name === (old.status.nominatedNodeName ?? '')) return []
  const field = fieldPath('status.nominatedNodeName')
  const errors = field.check(name, dns1123Subdomain)
  if ((old.spec.nodeName ?? '') === '' || !isEnabled('ClearingNominatedNodeNameAfterBinding')) return errors
  return [...errors, field.forbidden('may not be set on pods that are already bound to a node')]
}

/** Terminated containers stay so, unless they may restart. */
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
    return fieldPath('status')
      .child(name)
      .each(old.status[name], (path, before) => {
        if (before.state.terminated === undefined) return []
        if (!running.has(before.name) || mayRestart(before)) return []
        const field = path.child('state')
        return [field.forbidden('may not be transitioned to non-terminated state')]
      })
  })
}

function restarts(container: Container | undefined, spec: PodSpec, exitCode: number, options: PodOptions): boolean {
  if (options.restartRules) return container !== undefined && shouldRestart(container, spec, exitCode)
  if (spec.restartPolicy === 'Always' || container?.restartPolicy === 'Always') return true
  return spec.restartPolicy === 'OnFailure' && exitCode !== 0
}

/** Old invalid addresses may stay; at most one of each family. */
function validateIps(next: Pod, old: Pod, name: 'podIPs' | 'hostIPs', { strictIps }: PodOptions): FieldError[] {
  const field = fieldPath('status').child(name)
  const ips = (next.status[name] ?? []).map(({ ip }) => ip)
  const before = (old.status[name] ?? []).map(({ ip }) => ip)
  const errors = field.each(ips, (path, ip) => validateLegacyIp(path, ip, { strict: strictIps, old: before }))
  if (ips.length < 2) return errors
  const families = new Set(ips.map((ip) => canonicalIp(ip)?.includes(':')))
  if (ips.length === 2 && families.size === 2 && !families.has(undefined)) return errors
  return [...errors, field.invalid(next.status[name], 'may specify no more than one IP for each IP family')]
}

function validateHostIp({ status }: Pod): FieldError[] {
  const first = status.hostIPs?.[0]?.ip
  if (first === undefined || first === (status.hostIP ?? '')) return []
  return [fieldPath('status.hostIPs[0].ip').invalid(first, 'must be equal to `hostIP`')]
}

function validateUsers(field: FieldPath, statuses: readonly ContainerStatus[] = [], { os }: PodSpec): FieldError[] {
  return field.each(statuses, (itemPath, { user }) => {
    const path = itemPath.child('user.linux')
    const linux = user?.linux
    if (linux === undefined) return []
    if (os?.name === 'windows') return [path.forbidden('cannot be set for a windows pod')]
    const groups = path.child('supplementalGroups')
    return [
      ...path.child('uid').check(linux.uid, userId),
      ...path.child('gid').check(linux.gid, userId),
      ...groups.each(linux.supplementalGroups, (path, id) => path.check(id, userId)),
    ]
  })
}

const MAX_HEALTH_MESSAGE_BYTES = 1024

/** The health of allocated devices of a container. */
function validateAllocated(
  path: FieldPath,
  statuses: readonly ContainerStatus[] = [],
  containers: readonly Container[] = [],
): FieldError[] {
  const byName = firstByKey(containers, ({ name }) => name)
  return path.each(statuses, (itemPath, status) =>
    itemPath
      .child('allocatedResourcesStatus')
      .each(status.allocatedResourcesStatus, (path, { name, resources = [] }) => {
        const container = byName.get(status.name)
        const isRepeated = createRepetition()
        return collectErrors(
          container !== undefined && validateAllocatedName(path.child('name'), name, container),
          path.child('resources').each(resources, (where, { resourceID, health = '', message }) => {
            const again = isRepeated(resourceID) ? [where.child('resourceID').duplicate(asJson(resourceID))] : []
            return [...validateHealth(where, health, message), ...again]
          }),
        )
      }),
  )
}

function validateAllocatedName(path: FieldPath, name: string, { resources }: Container): FieldError[] {
  if (name.startsWith('claim:')) {
    const claims = (resources?.claims ?? []).map((one) => `claim:${one.name}${one.request ? `/${one.request}` : ''}`)
    if (claims.includes(name)) return []
    const form = "in a format 'claim:<claimName>/<request>' or 'claim:<claimName>' if request is empty"
    return [path.invalid(asJson(name), `must match one of the container's resource claims ${form}`)]
  }
  if (Object.hasOwn(resources?.requests ?? {}, name)) return []
  return [path.invalid(asJson(name), "must match one of the container's resource requests")]
}

function validateHealth(path: FieldPath, health: string, message: string | undefined): FieldError[] {
  const known = ['Healthy', 'Unhealthy', 'Unknown']
  const errors = known.includes(health) ? [] : [path.child('health').notSupported(asJson(health), known)]
  if (message === '') return [...errors, path.child('message').required('must be non-empty if specified')]
  if (byteLength(message ?? '') <= MAX_HEALTH_MESSAGE_BYTES) return errors
  return [...errors, path.child('message').tooLong(MAX_HEALTH_MESSAGE_BYTES)]
}

const MAX_IMAGE_REF_BYTES = 256

function validateImageVolumes(field: FieldPath, statuses: readonly ContainerStatus[] = []): FieldError[] {
  return field.each(statuses, (itemPath, { volumeMounts = [] }) =>
    itemPath.child('volumeMounts').each(volumeMounts, (mountPath, { volumeStatus }) => {
      const image = volumeStatus?.image
      if (image === undefined) return []
      const path = mountPath.child('volumeStatus.imageVolumeStatus.imageRef')
      const { imageRef = '' } = image
      if (imageRef === '') return [path.required('imageRef must not be empty')]
      return byteLength(imageRef) > MAX_IMAGE_REF_BYTES ? [path.tooLong(MAX_IMAGE_REF_BYTES)] : []
    }),
  )
}
