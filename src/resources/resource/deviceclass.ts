/** The DeviceClass resource: a kind of devices that claims request by name, with selectors and configuration. */
import { type DeviceClass, DeviceClasses } from '#apis/resource/v1.ts'
import { DeviceClasses as OldDeviceClasses } from '#apis/resource/v1beta1.ts'
import { DeviceClasses as NearDeviceClasses } from '#apis/resource/v1beta2.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { semanticEqual } from '#meta/object.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { nameIsPathSegment, nameIsSubdomain } from '#meta/validation/names.ts'
import { isExtendedResource } from '#model/pod-spec/containers/resource-names.ts'

import { MAX_CONFIGS } from './claim-spec.ts'
import { validateDeviceConfiguration, validateSelectors } from './device-config.ts'
import { validateList } from './lists.ts'

const GATE = 'DRAExtendedResource'

export const deviceClass: Resource<DeviceClass> = defineResource<DeviceClass>({
  kind: DeviceClasses,
  metadataRules: { update: ['whole', 'change'] },
  // The generated name is validated, not the prefix.
  nameRule: (name, prefix) => (prefix ? nameIsPathSegment(name, prefix) : nameIsSubdomain(name, prefix)),
  otherVersions: [{ kind: NearDeviceClasses }, { kind: OldDeviceClasses }],
  generation: 'spec',
  prepareCreate({ spec }, { isEnabled }) {
    if (!isEnabled(GATE)) delete spec.extendedResourceName
  },
  prepareUpdate({ spec }, old, { isEnabled }) {
    if (!isEnabled(GATE) && old.spec.extendedResourceName === undefined) delete spec.extendedResourceName
  },
  validate: (object) => validateClass(object),
  validateUpdate: (next, old) => validateClass(next, old),
  columns: [nameColumn, ageColumn],
  deleteAnswersObject: true,
})

function validateClass({ spec }: DeviceClass, old?: DeviceClass): FieldError[] {
  const { selectors, config, extendedResourceName: resource } = spec
  const isStored = (name: 'selectors' | 'config'): boolean =>
    old !== undefined && semanticEqual(spec[name], old.spec[name])
  return collectErrors(
    validateSelectors(fieldPath('spec.selectors'), selectors),
    validateList(fieldPath('spec.config'), config, MAX_CONFIGS, (path, one) =>
      validateDeviceConfiguration(path, one, isStored('config')),
    ),
    resource !== undefined &&
      !isExtendedResource(resource) &&
      fieldPath('spec.extendedResourceName').invalid(resource, 'must be a valid extended resource name'),
  )
}
