/** PodGroupWorkloadExists: refuses a PodGroup whose Workload or template does not exist. */
import { type PodGroup, type WorkloadPodGroupTemplateReference, Workloads } from '#apis/scheduling/v1alpha2.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { goQuote } from '#lib/go/text.ts'

import { refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface PodGroupWorkloadExistsOptions {
  readonly isEnabled: (gate: string) => boolean
}

export function createPodGroupWorkloadExists({ isEnabled }: PodGroupWorkloadExistsOptions): AdmissionPlugin {
  return defineAdmission({
    name: 'PodGroupWorkloadExists',
    on: ['CREATE'],
    resources: ['podgroups.scheduling.k8s.io'],

    validate(attributes) {
      const reference = (attributes.object as PodGroup).spec.podGroupTemplateRef?.workload ?? undefined
      return reference === undefined || !isEnabled('GenericWorkload') ? undefined : check(attributes, reference)
    },
  })
}

async function check(attributes: Attributes, reference: WorkloadPodGroupTemplateReference): Promise<void> {
  const { workloadName, podGroupTemplateName } = reference
  const workload = await attributes.objects.get(Workloads, attributes.namespace, workloadName)
  const name = goQuote(workloadName)
  if (workload === undefined) throw refuse(attributes, `PodGroup rejected: Workload ${name} not found`)
  if (workload.metadata.deletionTimestamp !== undefined) {
    throw refuse(attributes, `PodGroup rejected: Workload ${name} is being deleted`)
  }
  if (workload.spec.podGroupTemplates?.some((template) => template.name === podGroupTemplateName)) return
  const template = goQuote(podGroupTemplateName)
  throw refuse(attributes, `PodGroup rejected: PodGroupTemplate ${template} not found in Workload ${name}`)
}
