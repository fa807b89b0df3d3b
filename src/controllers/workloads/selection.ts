/** Parses `--controllers`: `*` selects all default controllers, `-name` disables one, aliases are accepted. */
import type { Controller } from '../controller.ts'

/** Every name of upstream with its alias; other names are errors. */
const NAMES: Readonly<Record<string, string>> = {
  'bootstrap-signer-controller': 'bootstrapsigner',
  'certificatesigningrequest-approving-controller': 'csrapproving',
  'certificatesigningrequest-cleaner-controller': 'csrcleaner',
  'certificatesigningrequest-signing-controller': 'csrsigning',
  'cloud-node-lifecycle-controller': 'cloud-node-lifecycle',
  'clusterrole-aggregation-controller': 'clusterrole-aggregation',
  'cronjob-controller': 'cronjob',
  'daemonset-controller': 'daemonset',
  'deployment-controller': 'deployment',
  'device-taint-eviction-controller': '',
  'disruption-controller': 'disruption',
  'endpoints-controller': 'endpoint',
  'endpointslice-controller': 'endpointslice',
  'endpointslice-mirroring-controller': 'endpointslicemirroring',
  'ephemeral-volume-controller': 'ephemeral-volume',
  'garbage-collector-controller': 'garbagecollector',
  'horizontal-pod-autoscaler-controller': 'horizontalpodautoscaling',
  'job-controller': 'job',
  'kube-apiserver-serving-clustertrustbundle-publisher-controller': '',
  'legacy-serviceaccount-token-cleaner-controller': 'legacy-service-account-token-cleaner',
  'namespace-controller': 'namespace',
  'node-ipam-controller': 'nodeipam',
  'node-lifecycle-controller': 'nodelifecycle',
  'node-route-controller': 'route',
  'persistentvolume-attach-detach-controller': 'attachdetach',
  'persistentvolume-binder-controller': 'persistentvolume-binder',
  'persistentvolume-expander-controller': 'persistentvolume-expander',
  'persistentvolume-protection-controller': 'pv-protection',
  'persistentvolumeclaim-protection-controller': 'pvc-protection',
  'pod-garbage-collector-controller': 'podgc',
  'podcertificaterequest-cleaner-controller': '',
  'podgroup-protection-controller': '',
  'replicaset-controller': 'replicaset',
  'replicationcontroller-controller': 'replicationcontroller',
  'resourceclaim-controller': 'resource-claim-controller',
  'resourcepoolstatusrequest-controller': '',
  'resourcequota-controller': 'resourcequota',
  'root-ca-certificate-publisher-controller': 'root-ca-cert-publisher',
  'selinux-warning-controller': '',
  'service-cidr-controller': '',
  'service-lb-controller': 'service',
  'serviceaccount-controller': 'serviceaccount',
  'serviceaccount-token-controller': 'serviceaccount-token',
  'statefulset-controller': 'statefulset',
  'storage-version-migrator-controller': 'svm',
  'storageversion-garbage-collector-controller': 'storage-version-gc',
  'taint-eviction-controller': '',
  'token-cleaner-controller': 'tokencleaner',
  'ttl-after-finished-controller': 'ttl-after-finished',
  'ttl-controller': 'ttl',
  'validatingadmissionpolicy-status-controller': '',
  'volumeattributesclass-protection-controller': '',
}

export const CONTROLLER_NAMES: readonly string[] = Object.keys(NAMES)

export interface ControllerChoice {
  readonly controllers: readonly Controller[]
  /** Upstream's texts. */
  readonly errors: readonly string[]
  /** Named explicitly, but only cloud-controller-manager runs them. */
  readonly cloudOnly: readonly string[]
}

/** The first entry for a controller counts; without one `*` decides. `names` contains all valid names and aliases. */
export function chooseControllers(
  all: readonly Controller[],
  requested: readonly string[],
  names: Readonly<Record<string, string>> = NAMES,
): ControllerChoice {
  const newName = (text: string): string => Object.keys(names).find((name) => names[name] === text) ?? text
  const words = requested.map((text) => ({ text, isOn: !text.startsWith('-'), name: newName(text.replace(/^-/, '')) }))
  const unknown = words.filter(({ text, name }) => text !== '*' && !Object.hasOwn(names, name))
  const controllers = all.filter(({ name, isOptional }) => {
    const word = words.find((each) => each.text !== '*' && each.name === name)
    return word?.isOn ?? (isOptional !== true && requested.includes('*'))
  })
  const cloudOnly = words
    .filter(({ text, isOn, name }) => isOn && text !== '*' && !all.some((one) => one.name === name))
    .map(({ name }) => name)
  return {
    controllers,
    errors: unknown.map(({ text }) => `"${text.replace(/^-/, '')}" is not in the list of known controllers`),
    cloudOnly,
  }
}
