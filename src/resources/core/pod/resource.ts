/** The Pod resource: containers that run together on one node. */
import { type Pod, Pods } from '#apis/core/v1.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { fieldPath } from '#meta/validation/field-path.ts'
import { dns1123Label } from '#meta/validation/names.ts'
import { defaultPod } from '#model/pod-spec/defaults.ts'
import { podWarnings } from '#model/pod-spec/warnings/warnings.ts'
import { isScheduled, isTerminal } from '#model/pods.ts'

import { appArmorWarnings } from './app-armor.ts'
import { bindingPart } from './binding.ts'
import { podColumns, podRowConditions } from './columns.ts'
import { ephemeralContainers } from './ephemeral-containers.ts'
import { preparePodCreate, preparePodUpdate } from './prepare.ts'
import { resize } from './resize.ts'
import { defaultPodStatus, podStatus } from './status.ts'
import { validatePodUpdate } from './update.ts'
import { validatePodCreate } from './validation.ts'

export const pod: Resource<Pod> = defineResource<Pod>({
  kind: Pods,
  metadataRules: { update: ['change', 'whole'] },
  generation: 'spec',
  applyDefaults(object, { isEnabled }) {
    defaultPod(object, isEnabled)
    defaultPodStatus(object.status)
  },
  prepareCreate: preparePodCreate,
  prepareUpdate: preparePodUpdate,
  validate: validatePodCreate,
  validateUpdate: validatePodUpdate,
  warnings: (next, old) => (old === undefined ? createWarnings(next) : []),
  graceSeconds,
  status: podStatus,
  parts: { binding: bindingPart, ephemeralcontainers: ephemeralContainers, resize },
  fieldSelectors: {
    'spec.nodeName': ({ spec }) => spec.nodeName ?? '',
    'spec.restartPolicy': ({ spec }) => spec.restartPolicy ?? '',
    'spec.schedulerName': ({ spec }) => spec.schedulerName ?? '',
    'spec.serviceAccountName': ({ spec }) => spec.serviceAccountName ?? '',
    'spec.hostNetwork': ({ spec }) => String(spec.hostNetwork ?? false),
    'status.phase': ({ status }) => status.phase ?? '',
    'status.podIP': ({ status }) => status.podIPs?.[0]?.ip ?? '',
    // A selectable field of upstream that is never set.
    'status.podIPs': () => '',
    'status.nominatedNodeName': ({ status }) => status.nominatedNodeName ?? '',
  },
  fieldAliases: { 'spec.host': 'spec.nodeName' },
  unknownField: (label) => `field label not supported: ${label}`,
  indexedFields: ['spec.nodeName'],
  columns: podColumns,
  rowConditions: podRowConditions,
  deleteAnswersObject: true,
})

function createWarnings(next: Pod): string[] {
  const complaints = dns1123Label(next.metadata.name ?? '')
  const hostname = "this is used in the Pod's hostname, which can result in surprising behavior"
  return [
    ...appArmorWarnings(next),
    ...(complaints.length === 0
      ? []
      : [`metadata.name: ${hostname}; a DNS label is recommended: [${complaints.join(' ')}]`]),
    ...podWarnings(fieldPath(''), next),
  ]
}

/** A kubelet stops running pods; unassigned and finished pods are deleted at once. */
function graceSeconds(object: Pod, requested: number | undefined): number {
  return isScheduled(object) && !isTerminal(object) ? (requested ?? object.spec.terminationGracePeriodSeconds ?? 0) : 0
}
