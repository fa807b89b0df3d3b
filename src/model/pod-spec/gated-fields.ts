/**
 * Drops fields of disabled feature gates, unless the old object has them. Gates that v1.36 locks to on are not checked.
 */
import type { Container, PodSpec, PodTemplateSpec, VolumeProjection } from '#apis/core/v1.ts'

import { usesRestartRules } from './options.ts'
import type { PodRules } from './rules.ts'
import { containersOf } from './walk.ts'

interface GatedField {
  readonly gate: string
  /** True if a spec has the field. */
  uses(spec: PodSpec): boolean
  drop(spec: PodSpec): void
}

const gated: readonly GatedField[] = [
  {
    gate: 'PodLevelResources',
    uses: ({ resources }) =>
      Object.keys(resources?.requests ?? {}).length > 0 || Object.keys(resources?.limits ?? {}).length > 0,
    drop: (spec) => delete spec.resources,
  },
  {
    gate: 'MatchLabelKeysInPodTopologySpread',
    uses: ({ topologySpreadConstraints = [] }) =>
      topologySpreadConstraints.some(({ matchLabelKeys = [] }) => matchLabelKeys.length > 0),
    drop: ({ topologySpreadConstraints = [] }) => {
      for (const constraint of topologySpreadConstraints) delete constraint.matchLabelKeys
    },
  },
  projection('ClusterTrustBundleProjection', 'clusterTrustBundle'),
  projection('PodCertificateRequest', 'podCertificate'),
  {
    gate: 'GenericWorkload',
    uses: ({ schedulingGroup }) => schedulingGroup !== undefined,
    drop: (spec) => delete spec.schedulingGroup,
  },
  { gate: 'ContainerRestartRules', uses: usesRestartRules, drop: dropRestartRules },
  {
    gate: 'HostnameOverride',
    uses: ({ hostnameOverride }) => hostnameOverride !== undefined,
    drop: (spec) => delete spec.hostnameOverride,
  },
  {
    gate: 'EnvFiles',
    uses: (spec) => sourcesOf(spec).some(({ fileKeyRef }) => fileKeyRef !== undefined),
    drop: (spec) => {
      for (const source of sourcesOf(spec)) delete source.fileKeyRef
    },
  },
  {
    gate: 'ContainerStopSignals',
    uses: (spec) => containersOf(spec).some(({ container }) => container.lifecycle?.stopSignal !== undefined),
    drop: (spec) => {
      for (const { container } of containersOf(spec)) dropStopSignal(container)
    },
  },
]

function projection(gate: string, name: 'clusterTrustBundle' | 'podCertificate'): GatedField {
  return {
    gate,
    uses: (spec) => projectionsOf(spec).some((source) => source[name] !== undefined),
    drop: (spec) => {
      for (const source of projectionsOf(spec)) delete source[name]
    },
  }
}

function projectionsOf({ volumes = [] }: PodSpec): VolumeProjection[] {
  return volumes.flatMap(({ projected }) => projected?.sources ?? [])
}

function sourcesOf(spec: PodSpec): NonNullable<NonNullable<Container['env']>[number]['valueFrom']>[] {
  return containersOf(spec).flatMap(({ container }) =>
    (container.env ?? []).flatMap(({ valueFrom }) => valueFrom ?? []),
  )
}

/** A sidecar keeps its policy, which existed before. */
function dropRestartRules(spec: PodSpec): void {
  for (const { container, role } of containersOf(spec)) {
    if (role !== 'init' || container.restartPolicy !== 'Always') delete container.restartPolicy
    delete container.restartPolicyRules
  }
}

function dropStopSignal(container: Container): void {
  if (container.lifecycle?.stopSignal === undefined) return
  delete container.lifecycle.stopSignal
  if (Object.keys(container.lifecycle).length === 0) delete container.lifecycle
}

/** For prepareCreate and prepareUpdate of Pods. */
export function dropDisabledPodFields(spec: PodSpec, old: PodSpec | undefined, { isEnabled }: PodRules): void {
  for (const field of gated) {
    if (!isEnabled(field.gate) && (old === undefined || !field.uses(old))) field.drop(spec)
  }
}

/** For prepareCreate and prepareUpdate of every kind with a template. */
export function dropDisabledTemplateFields(
  template: PodTemplateSpec | undefined,
  old: PodTemplateSpec | undefined,
  rules: PodRules,
): void {
  if (template !== undefined) dropDisabledPodFields(template.spec, old?.spec, rules)
}
