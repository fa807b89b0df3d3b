/** The checks of the restricted Pod Security Standard, for hardened pods. Texts are upstream's, v1.36. */
import { isWindows } from '#model/pod-spec/walk.ts'

import { isSeccompType, seccompProfile } from './baseline.ts'
import { allContainers, type Check, distinct, named, plural, quoted, settersOf } from './violation.ts'

export const allowPrivilegeEscalation: Check = (spec) => {
  const bad = allContainers(spec).filter(({ securityContext }) => securityContext?.allowPrivilegeEscalation !== false)
  if (bad.length === 0) return undefined
  return {
    reason: 'allowPrivilegeEscalation != false',
    detail: `${named(bad)} must set securityContext.allowPrivilegeEscalation=false`,
  }
}

/** Since v1.25, fields that have no meaning on Windows are not required there. */
export function unlessWindows(check: Check): Check {
  return (spec, metadata) => (isWindows(spec) ? undefined : check(spec, metadata))
}

export const capabilities: Check = (spec) => {
  const all = allContainers(spec).map((container) => {
    const { add = [], drop = [] } = container.securityContext?.capabilities ?? {}
    return { container, dropsAll: drop.includes('ALL'), added: add.filter((one) => one !== 'NET_BIND_SERVICE') }
  })
  const keeping = all.filter(({ dropsAll }) => !dropsAll).map(({ container }) => container)
  const adding = all.filter(({ added }) => added.length > 0)
  const details = [
    ...(keeping.length === 0 ? [] : [`${named(keeping)} must set securityContext.capabilities.drop=["ALL"]`]),
    ...(adding.length === 0
      ? []
      : [
          `${named(adding.map(({ container }) => container))} must not include ${quoted(distinct(adding.flatMap(({ added }) => added)))} in securityContext.capabilities.add`,
        ]),
  ]
  return details.length === 0 ? undefined : { reason: 'unrestricted capabilities', detail: details.join('; ') }
}

const ALLOWED_VOLUMES = [
  'configMap',
  'csi',
  'downwardAPI',
  'emptyDir',
  'ephemeral',
  'image',
  'persistentVolumeClaim',
  'projected',
  'secret',
] as const

const OTHER_VOLUMES = [
  'hostPath',
  'gcePersistentDisk',
  'awsElasticBlockStore',
  'gitRepo',
  'nfs',
  'iscsi',
  'glusterfs',
  'rbd',
  'flexVolume',
  'cinder',
  'cephfs',
  'flocker',
  'fc',
  'azureFile',
  'vsphereVolume',
  'quobyte',
  'azureDisk',
  'photonPersistentDisk',
  'portworxVolume',
  'scaleIO',
  'storageos',
] as const

export const volumeTypes: Check = ({ volumes = [] }) => {
  const bad = volumes.filter((volume) => !ALLOWED_VOLUMES.some((type) => volume[type] !== undefined))
  if (bad.length === 0) return undefined
  const types = distinct(bad.map((volume) => OTHER_VOLUMES.find((type) => volume[type] !== undefined) ?? 'unknown'))
  const who = `${plural('volume', 'volumes', bad.length)} ${quoted(bad.map(({ name }) => name))}`
  const what = plural('restricted volume type', 'restricted volume types', types.length)
  return {
    reason: 'restricted volume types',
    detail: `${who} ${plural('uses', 'use', bad.length)} ${what} ${quoted(types)}`,
  }
}

export const runAsNonRoot: Check = (spec) => {
  const reason = 'runAsNonRoot != true'
  const setters = settersOf(spec, (context) => context.runAsNonRoot === false)
  if (setters !== undefined) {
    return { reason, detail: `${setters.text} must not set securityContext.runAsNonRoot=false` }
  }
  if (spec.securityContext?.runAsNonRoot === true) return undefined
  const silent = allContainers(spec).filter(({ securityContext }) => securityContext?.runAsNonRoot === undefined)
  if (silent.length === 0) return undefined
  return { reason, detail: `pod or ${named(silent)} must set securityContext.runAsNonRoot=true` }
}

export const runAsUser: Check = (spec) => {
  const setters = settersOf(spec, (context) => context.runAsUser === 0)
  return setters === undefined
    ? undefined
    : { reason: 'runAsUser=0', detail: `${setters.text} must not set runAsUser=0` }
}

/** The baseline check, and the field must be set. */
export const seccomp: Check = (spec, metadata) => {
  const explicit = seccompProfile(spec, metadata)
  if (explicit !== undefined) return explicit
  if (isSeccompType(spec.securityContext?.seccompProfile?.type ?? '')) return undefined
  const silent = allContainers(spec).filter(({ securityContext }) => securityContext?.seccompProfile === undefined)
  if (silent.length === 0) return undefined
  return {
    reason: 'seccompProfile',
    detail: `pod or ${named(silent)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`,
  }
}
