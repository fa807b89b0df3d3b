/** JobValidation: refuses changes of the number of pods of a Job with gang scheduling. */
import type { Job } from '#apis/batch/v1.ts'
import { type PodGroup, PodGroups } from '#apis/scheduling/v1alpha2.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { goQuote } from '#lib/go/text.ts'
import { isControlledBy } from '#meta/object.ts'

import { refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

export interface JobValidationOptions {
  readonly isEnabled: (gate: string) => boolean
}

export function createJobValidation({ isEnabled }: JobValidationOptions): AdmissionPlugin {
  return defineAdmission({
    name: 'JobValidation',
    on: ['UPDATE'],
    resources: ['jobs.batch'],

    validate(attributes) {
      const next = attributes.object as Job
      const old = attributes.oldObject as Job
      if (next.spec.parallelism === old.spec.parallelism) return
      return isEnabled('GenericWorkload') || isEnabled('WorkloadWithJob') ? check(attributes, old) : undefined
    },
  })
}

async function check(attributes: Attributes, job: Job): Promise<void> {
  const gang = (await groupsOf(attributes, job)).find(({ spec }) => spec.schedulingPolicy?.gang !== undefined)
  if (gang === undefined) return
  const name = goQuote(gang.metadata.name ?? '')
  throw refuse(attributes, `cannot change parallelism for a Job referencing gang-scheduled PodGroup ${name}`)
}

/** The pod group of the template, or those created for the job. */
async function groupsOf({ objects, namespace }: Attributes, job: Job): Promise<readonly PodGroup[]> {
  const name = job.spec.template.spec.schedulingGroup?.podGroupName
  if (name === undefined) {
    return (await objects.list(PodGroups, namespace)).filter((group) => isControlledBy(group, job))
  }
  const found = await objects.get(PodGroups, namespace, name)
  return found === undefined ? [] : [found]
}
