/** The DeviceTaintRule resource: a taint on devices that an administrator sets, independent of the driver. */
import {
  type DeviceTaintRule,
  DeviceTaintRules,
  type DeviceTaintRuleSpec,
  type DeviceTaintSelector,
} from '#apis/resource/v1alpha3.ts'
import { DeviceTaintRules as NearDeviceTaintRules } from '#apis/resource/v1beta2.ts'
import { ageColumn, nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource, type RuleContext } from '#apiserver/registry/resource.ts'
import { validateConditions } from '#meta/conditions.ts'
import { ageText } from '#meta/duration.ts'
import type { KubeObject } from '#meta/object.ts'
import { timeOf } from '#meta/time.ts'
import { collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { validateDnsLabel } from '#meta/validation/rules.ts'
import { validateDriverName } from '#model/pod-spec/volumes/volume-sources.ts'

import { validateTaint } from './device.ts'
import { validatePoolName } from './names.ts'

const MAX_CONDITIONS = 8

export const deviceTaintRule: Resource<DeviceTaintRule> = defineResource<DeviceTaintRule>({
  kind: DeviceTaintRules,
  otherVersions: [{ kind: NearDeviceTaintRules, applyDefaults: defaultTimeAdded }],
  generation: 'spec',
  applyDefaults: defaultTimeAdded,
  prepareUpdate({ spec: { taint } }, old, { clock }) {
    // Tolerations depend on the time since the effect applies.
    const before = old.spec.taint
    if (taint.effect !== before.effect && taint.timeAdded === before.timeAdded) taint.timeAdded = timeOf(clock.now())
  },
  validate: ({ spec }) => validateSpec(spec),
  validateUpdate: (next, old) => validateSpec(next.spec, old.spec),
  status: {
    validateUpdate({ status: { conditions = [] } }) {
      const field = fieldPath('status.conditions')
      return collectErrors(
        validateConditions(field, conditions as Parameters<typeof validateConditions>[1]),
        conditions.length > MAX_CONDITIONS && field.tooMany(conditions.length, MAX_CONDITIONS),
      )
    },
  },
  columns: [
    nameColumn,
    { name: 'Key', value: ({ spec }) => spec.taint.key },
    { name: 'Value', value: ({ spec }) => spec.taint.value ?? '' },
    { name: 'Effect', value: ({ spec }) => spec.taint.effect },
    {
      name: 'TimeAdded',
      value: ({ spec: { taint } }, nowMs) => (taint.timeAdded === undefined ? '' : ageText(taint.timeAdded, nowMs)),
    },
    ageColumn,
  ],
  deleteAnswersObject: true,
})

function defaultTimeAdded(object: KubeObject, { clock }: RuleContext): void {
  ;(object as DeviceTaintRule).spec.taint.timeAdded ??= timeOf(clock.now())
}

function validateSpec({ deviceSelector, taint }: DeviceTaintRuleSpec, old?: DeviceTaintRuleSpec): FieldError[] {
  return collectErrors(
    deviceSelector !== undefined && validateSelector(fieldPath('spec.deviceSelector'), deviceSelector),
    validateTaint(fieldPath('spec.taint'), taint, old?.taint),
  )
}

function validateSelector(path: FieldPath, { driver, pool, device }: DeviceTaintSelector): FieldError[] {
  return collectErrors(
    driver !== undefined && validateDriverName(path.child('driver'), driver),
    pool !== undefined && validatePoolName(path.child('pool'), pool),
    device !== undefined && validateDnsLabel(path.child('device'), device),
  )
}
