/** Evaluates the feature gates of gate-table.ts, and what they depend on. */
import { type FeatureGates, type GateSpecs, isEnabled } from '#lib/flags/feature-gates.ts'

import { GATE_GROUPS } from './gate-table.ts'

const words = (text = ''): readonly string[] => text.split(/\s+/).filter(Boolean)

export const FEATURE_GATES: GateSpecs = Object.fromEntries(
  GATE_GROUPS.flatMap(({ spec, working, elsewhere, locked, fixed = {}, refused = {} }) => {
    const names = [...[working, elsewhere, locked].flatMap(words), ...Object.keys(fixed), ...Object.keys(refused)]
    return names.map((name) => [name, spec] as const)
  }),
)

/** Gates that take effect in this program. */
export const WORKING: readonly string[] = GATE_GROUPS.flatMap(({ working }) => words(working))

/** Returns the function that tells if a gate is enabled. It throws for a gate that is not in the table: a bug. */
export function createGates(settings: FeatureGates, onRead?: (gate: string) => void): (gate: string) => boolean {
  if (onRead === undefined) return (gate) => isEnabled(FEATURE_GATES, settings, gate)
  return (gate) => {
    onRead(gate)
    return isEnabled(FEATURE_GATES, settings, gate)
  }
}

/** Dependencies between gates, as far as the others can be disabled. */
const NEEDS: readonly (readonly [gates: string, needed: string])[] = [
  ['ClusterTrustBundleProjection', 'ClusterTrustBundle'],
  ['DRADeviceBindingConditions DRAResourceClaimGranularStatusAuthorization', 'DRAResourceClaimDeviceStatus'],
  ['DRADeviceTaintRules', 'DRADeviceTaints'],
  ['DRAWorkloadResourceClaims GangScheduling TopologyAwareWorkloadScheduling WorkloadWithJob', 'GenericWorkload'],
  [
    'ExtendWebSocketsToKubelet InPlacePodVerticalScalingInitContainers UserNamespacesHostNetworkSupport',
    'NodeDeclaredFeatures',
  ],
  ['GracefulNodeShutdownBasedOnPodPriority WindowsGracefulNodeShutdown', 'GracefulNodeShutdown'],
  ['InPlacePodLevelResourcesVerticalScaling', 'NodeDeclaredFeatures PodLevelResources'],
  ['MatchLabelKeysInPodTopologySpreadSelectorMerge', 'MatchLabelKeysInPodTopologySpread'],
  ['PodLevelResourceManagers', 'PodLevelResources'],
  ['ResourceHealthStatusMessage', 'ResourceHealthStatus'],
  ['RestartAllContainersOnContainerExits', 'ContainerRestartRules NodeDeclaredFeatures'],
  ['StaleControllerConsistencyDaemonSet StaleControllerConsistencyJob', 'AtomicFIFO'],
  ['StaleControllerConsistencyReplicaSet StaleControllerConsistencyStatefulSet', 'AtomicFIFO'],
  ['StorageVersionAPI UnknownVersionInteroperabilityProxy', 'APIServerIdentity'],
  ['WorkloadAwarePreemption', 'GangScheduling'],
]

/** Enabled gates whose dependencies are disabled, with upstream's texts. */
export function gateErrors(settings: FeatureGates): string[] {
  const isOn = createGates(settings)
  return NEEDS.flatMap(([gates, needed]) => {
    const off = needed.split(' ').filter((gate) => !isOn(gate))
    if (off.length === 0) return []
    const why = `is enabled, but depends on features that are disabled: [${off.join(' ')}]`
    return gates
      .split(' ')
      .filter(isOn)
      .map((gate) => `${gate} ${why}`)
  })
}
