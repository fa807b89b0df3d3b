/**
 * Sets the defaults of a pod spec (pkg/apis/core/v1/defaults.go, v1.36). Quantities are rounded up to thousandths, as
 * in upstream.
 */
import type {
  Container,
  DownwardAPIVolumeFile,
  HTTPGetAction,
  PersistentVolumeClaimSpec,
  Pod,
  PodSpec,
  PodTemplateSpec,
  Probe,
  ProjectedVolumeSource,
  Volume,
} from '#apis/core/v1.ts'
import type { ObjectMeta } from '#meta/object.ts'
import { parseQuantity, type Quantity, quantityText, roundQuantityUp } from '#meta/quantity.ts'

import { containerLimits, containerRequests } from '../pod-resources.ts'
import { imageTag } from './containers/image-reference.ts'
import { isHugePages, isOvercommitAllowed, isPodLevelResource } from './containers/resource-names.ts'
import { sourceNames } from './volumes/volume-sources.ts'
import { containersOf } from './walk.ts'

type ResourceList = Record<string, string>

const GRACE_SECONDS = 30
const FILE_MODE = 0o644
const TOKEN_SECONDS = 60 * 60

/** Sets missing values; an empty text is missing too. */
function fill<T extends object>(object: T | undefined, defaults: Partial<T>): void {
  if (object === undefined) return
  for (const [name, value] of Object.entries(defaults) as [keyof T, T[keyof T]][]) {
    if (object[name] == null || object[name] === '') object[name] = value
  }
}

/** Sets absent values; an empty text is a value, which validation rejects. */
function fillAbsent<T extends object>(object: T | undefined, defaults: Partial<T>): void {
  if (object !== undefined) Object.assign(object, { ...defaults, ...object })
}

/** Defaults of every pod spec, in pods and templates. */
export function defaultPodSpec(spec: PodSpec): void {
  fill(spec, {
    dnsPolicy: 'ClusterFirst',
    restartPolicy: 'Always',
    securityContext: {},
    terminationGracePeriodSeconds: GRACE_SECONDS,
    schedulerName: 'default-scheduler',
  })
  alignServiceAccount(spec)
  for (const volume of spec.volumes ?? []) defaultVolume(volume)
  for (const { container } of containersOf(spec)) defaultContainer(container)
  roundAmounts(spec.overhead)
  roundAmounts(spec.resources?.limits)
  roundAmounts(spec.resources?.requests)
}

/** The same for a template; workloads call this for their `spec.template`. */
export function defaultPodTemplate(template: PodTemplateSpec | undefined): void {
  if (template === undefined) return
  dropInitAnnotations(template.metadata)
  defaultPodSpec(template.spec)
}

/** Defaults of Pods only, before `defaultPodSpec`: requests from limits, host ports, service links. */
export function defaultPod(pod: Pod, isEnabled: (gate: string) => boolean): void {
  const { spec, metadata } = pod
  dropInitAnnotations(metadata)
  for (const { resources } of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) {
    if (resources?.limits !== undefined) resources.requests = { ...resources.limits, ...resources.requests }
  }
  if (isEnabled('PodLevelResources')) defaultPodResources(spec)
  spec.enableServiceLinks ??= true
  if (spec.hostNetwork === true) defaultHostPorts(spec)
  // Only for pods: the behaviour of templates must not change.
  if ((spec.terminationGracePeriodSeconds ?? 0) < 0) spec.terminationGracePeriodSeconds = 1
  defaultPodSpec(spec)
}

/** `serviceAccount` is the old name of `serviceAccountName`, which wins; both are always equal. */
export function alignServiceAccount(spec: PodSpec): void {
  const name = spec.serviceAccountName || spec.serviceAccount
  if (name === undefined) return
  spec.serviceAccountName = name
  spec.serviceAccount = name
}

const initAnnotations = ['beta', 'alpha'].flatMap((stage) =>
  ['init-containers', 'init-container-statuses'].map((name) => `pod.${stage}.kubernetes.io/${name}`),
)

/** Annotations from before spec.initContainers; a kubelet of that age must not act on them. */
function dropInitAnnotations(metadata: ObjectMeta): void {
  for (const name of initAnnotations) if (metadata.annotations !== undefined) delete metadata.annotations[name]
}

function defaultHostPorts(spec: PodSpec): void {
  for (const { ports = [] } of [...(spec.containers ?? []), ...(spec.initContainers ?? [])]) {
    for (const port of ports) if ((port.hostPort ?? 0) === 0) port.hostPort = port.containerPort
  }
}

/**
 * Pod-level requests if there are limits: the total requests of containers, or else the limits. Huge pages have equal
 * requests and limits, so they get limits from the containers.
 */
function defaultPodResources({ resources, ...spec }: PodSpec): void {
  if (resources === undefined) return
  const { limits = {}, requests = {} } = resources
  if (Object.keys(limits).length + Object.keys(requests).length > 0) {
    const pages = [...containerLimits(spec)].filter(([name]) => isHugePages(name) && !Object.hasOwn(requests, name))
    resources.limits = withMissing(limits, pages)
    if (Object.keys(resources.limits).length === 0) delete resources.limits
  }
  if (Object.keys(resources.limits ?? {}).length === 0) return
  const shared = [...containerRequests(spec)].filter(([name]) => isPodLevelResource(name) && isOvercommitAllowed(name))
  const own = Object.entries(resources.limits ?? {}).filter(([name]) => isPodLevelResource(name))
  const filled = withMissing(withMissing(requests, shared), own)
  if (Object.keys(filled).length > 0) resources.requests = filled
}

function withMissing(list: ResourceList, more: readonly (readonly [string, Quantity | string])[]): ResourceList {
  const text = (amount: Quantity | string): string => (typeof amount === 'string' ? amount : quantityText(amount))
  return { ...Object.fromEntries(more.map(([name, amount]) => [name, text(amount)])), ...list }
}

/** Rounds finer quantities up to thousandths. */
export function roundAmounts(list: ResourceList | undefined): void {
  for (const [name, amount] of Object.entries(list ?? {})) {
    const quantity = parseQuantity(amount)
    if (list !== undefined && quantity.scale < -3) list[name] = quantityText(roundQuantityUp(quantity, -3))
  }
}

function pullPolicyFor(image: string | undefined): string {
  return imageTag(image ?? '') === 'latest' ? 'Always' : 'IfNotPresent'
}

function defaultContainer(container: Container): void {
  fill(container, {
    imagePullPolicy: pullPolicyFor(container.image),
    terminationMessagePath: '/dev/termination-log',
    terminationMessagePolicy: 'File',
  })
  for (const port of container.ports ?? []) fill(port, { protocol: 'TCP' })
  for (const { valueFrom } of container.env ?? []) {
    defaultFieldRef(valueFrom)
    fill(valueFrom?.fileKeyRef, { optional: false })
  }
  roundAmounts(container.resources?.limits)
  roundAmounts(container.resources?.requests)
  for (const name of ['livenessProbe', 'readinessProbe', 'startupProbe'] as const) defaultProbe(container[name])
  defaultHttpGet(container.lifecycle?.postStart?.httpGet)
  defaultHttpGet(container.lifecycle?.preStop?.httpGet)
}

function defaultFieldRef(source: Pick<DownwardAPIVolumeFile, 'fieldRef'> | undefined): void {
  fill(source?.fieldRef, { apiVersion: 'v1' })
}

function defaultProbe(probe: Probe | undefined): void {
  if (probe === undefined) return
  probe.timeoutSeconds ||= 1
  probe.periodSeconds ||= 10
  probe.successThreshold ||= 1
  probe.failureThreshold ||= 3
  defaultHttpGet(probe.httpGet)
  fill(probe.grpc, { service: '' })
}

function defaultHttpGet(action: HTTPGetAction | undefined): void {
  fill(action, { path: '/', scheme: 'HTTP' })
}

function defaultVolume(volume: Volume): void {
  if (sourceNames.every((name) => volume[name] === undefined)) volume.emptyDir = {}
  fill(volume.image, { pullPolicy: pullPolicyFor(volume.image?.reference) })
  fill(volume.hostPath, { type: '' })
  fill(volume.secret, { defaultMode: FILE_MODE })
  fill(volume.configMap, { defaultMode: FILE_MODE })
  fill(volume.downwardAPI, { defaultMode: FILE_MODE })
  for (const file of volume.downwardAPI?.items ?? []) defaultFieldRef(file)
  defaultProjected(volume.projected)
  defaultClaim(volume.ephemeral?.volumeClaimTemplate?.spec)
  defaultLegacyVolume(volume)
}

function defaultProjected(projected: ProjectedVolumeSource | undefined): void {
  fill(projected, { defaultMode: FILE_MODE })
  for (const { downwardAPI, serviceAccountToken } of projected?.sources ?? []) {
    for (const file of downwardAPI?.items ?? []) defaultFieldRef(file)
    fill(serviceAccountToken, { expirationSeconds: TOKEN_SECONDS })
  }
}

/** The claim template of an ephemeral volume. */
function defaultClaim(claim: PersistentVolumeClaimSpec | undefined): void {
  fillAbsent(claim, { volumeMode: 'Filesystem' })
  roundAmounts(claim?.resources?.limits)
  roundAmounts(claim?.resources?.requests)
}

/** In-tree volumes of storage systems. */
function defaultLegacyVolume({ iscsi, rbd, azureDisk, scaleIO }: Volume): void {
  fill(iscsi, { iscsiInterface: 'default' })
  fill(rbd, { pool: 'rbd', user: 'admin', keyring: '/etc/ceph/keyring' })
  fillAbsent(azureDisk, { cachingMode: 'ReadWrite', fsType: 'ext4', readOnly: false, kind: 'Shared' })
  fill(scaleIO, { storageMode: 'ThinProvisioned', fsType: 'xfs' })
}
