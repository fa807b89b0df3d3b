/** AlwaysPullImages: sets the pull policy Always, so that a pod cannot use an image for which it has no credentials. */
import type { Pod } from '#apis/core/v1.ts'
import type { Attributes } from '#apiserver/registry/admission.ts'
import { fieldErrorText } from '#meta/validation/field-error.ts'
import { asJson, fieldPath } from '#meta/validation/field-path.ts'
import { containersOf } from '#model/pod-spec/walk.ts'

import { aggregate, refuse } from './kit/refusal.ts'
import { type AdmissionPlugin, defineAdmission } from './plugin.ts'

const ALWAYS = 'Always'

export const alwaysPullImages: AdmissionPlugin = defineAdmission({
  name: 'AlwaysPullImages',
  on: ['CREATE', 'UPDATE'],
  resources: ['pods'],

  mutate(attributes) {
    if (bringsNoImage(attributes)) return
    const { spec } = attributes.object as Pod
    for (const { container } of containersOf(spec)) container.imagePullPolicy = ALWAYS
    for (const { image } of spec.volumes ?? []) if (image !== undefined) image.pullPolicy = ALWAYS
  },
  validate(attributes) {
    if (bringsNoImage(attributes)) return
    const { spec } = attributes.object as Pod
    const policies = [
      ...containersOf(spec).map(
        ({ container, path }) => [path.child('imagePullPolicy'), container.imagePullPolicy] as const,
      ),
      ...(spec.volumes ?? []).flatMap(({ image }, at) =>
        image === undefined
          ? []
          : [[fieldPath('spec.volumes').index(at).child('image.pullPolicy'), image.pullPolicy] as const],
      ),
    ]
    const errors = policies
      .filter(([, policy]) => policy !== ALWAYS)
      .map(([path, policy]) => path.notSupported(asJson(policy ?? ''), [ALWAYS]))
    if (errors.length > 0) throw refuse(attributes, aggregate(errors.map(fieldErrorText)))
  },
})

function bringsNoImage({ operation, object, oldObject }: Attributes): boolean {
  if (operation !== 'UPDATE') return false
  const images = (pod: Pod): (string | undefined)[] => containersOf(pod.spec).map(({ container }) => container.image)
  const known = new Set(images(oldObject as Pod))
  return images(object as Pod).every((image) => known.has(image))
}
