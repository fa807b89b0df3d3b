/** The LimitRange resource: minimum, maximum and default amounts for pods, containers and claims of a namespace. */
import { type LimitRange, type LimitRangeItem, LimitRanges } from '#apis/core/v1.ts'
import { nameColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { compareText } from '#lib/go/text.ts'
import { uuid } from '#lib/random.ts'
import { createRepetition } from '#lib/repetition.ts'
import {
  compareQuantities,
  parseQuantity,
  type Quantity,
  quantityMilliValue,
  quantityOf,
  quantityText,
  quantityValue,
} from '#meta/quantity.ts'
import { asJson, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { qualifiedName } from '#meta/validation/names.ts'
import {
  isOvercommitAllowed,
  validateContainerResourceName,
  validateResourceName,
} from '#model/pod-spec/containers/resource-names.ts'
import { roundAmounts } from '#model/pod-spec/defaults.ts'
import { amountOf, type ResourceList, sortedAmounts } from '#model/resource-lists.ts'

import { createdAtColumn } from '../created-at.ts'

export const limitRange: Resource<LimitRange> = defineResource<LimitRange>({
  kind: LimitRanges,
  metadataRules: { update: ['whole'] },
  applyDefaults: ({ spec }) => spec?.limits?.forEach(defaultLimits),
  prepareCreate(object, { random }) {
    object.metadata.name ||= uuid(random)
  },
  validate: validateLimitRange,
  columns: [nameColumn, createdAtColumn],
  putCreates: true,
})

const listNames = ['max', 'min', 'default', 'defaultRequest', 'maxLimitRequestRatio'] as const

function defaultLimits(item: LimitRangeItem): void {
  for (const name of listNames) roundAmounts(item[name])
  if (item.type !== 'Container') return
  item.default = { ...item.max, ...item.default }
  item.defaultRequest = { ...item.min, ...item.default, ...item.defaultRequest }
}

const standardTypes = ['Pod', 'Container', 'PersistentVolumeClaim']

function validateLimitRange({ spec }: LimitRange): FieldError[] {
  const isRepeated = createRepetition()
  return fieldPath('spec.limits').each(spec?.limits, (path, item) => {
    const twice = isRepeated(item.type) ? [path.child('type').duplicate(asJson(item.type))] : []
    return [...validateType(path.child('type'), item.type), ...twice, ...validateItem(path, item)]
  })
}

function validateType(path: FieldPath, type: string): FieldError[] {
  const errors = path.check(asJson(type), () => qualifiedName(type))
  if (errors.length > 0 || type.includes('/') || standardTypes.includes(type)) return errors
  return [path.invalid(asJson(type), 'must be a standard limit type or fully qualified')]
}

function validateItem(path: FieldPath, item: LimitRangeItem): FieldError[] {
  const isPod = item.type === 'Pod'
  const names = (list: (typeof listNames)[number]): FieldError[] => validateNames(path, item, list)
  const refused = (list: 'default' | 'defaultRequest'): FieldError[] =>
    sortedAmounts(item[list]).length > 0
      ? [path.child(list).forbidden("may not be specified when `type` is 'Pod'")]
      : []
  const defaults = (['default', 'defaultRequest'] as const).flatMap((list) => (isPod ? refused(list) : names(list)))
  return [
    ...names('max'),
    ...names('min'),
    ...defaults,
    ...validateClaimLimits(path, item),
    ...names('maxLimitRequestRatio'),
    ...resourcesOf(item, isPod).flatMap((name) => validateAmounts(path, name, item)),
  ]
}

function validateNames(path: FieldPath, item: LimitRangeItem, list: (typeof listNames)[number]): FieldError[] {
  const check = item.type === 'Pod' || item.type === 'Container' ? validateContainerResourceName : validateResourceName
  return sortedAmounts(item[list]).flatMap(([name]) => check(path.child(list).key(name), name))
}

function validateClaimLimits(path: FieldPath, { type, min, max }: LimitRangeItem): FieldError[] {
  if (type !== 'PersistentVolumeClaim' || amountOf(min, 'storage') !== undefined) return []
  if (amountOf(max, 'storage') !== undefined) return []
  const rule = 'either minimum or maximum storage value is required, but neither was provided'
  return [path.child('limits').required(rule)]
}

function resourcesOf(item: LimitRangeItem, isPod: boolean): string[] {
  const lists = listNames.filter((name) => !isPod || !name.startsWith('default'))
  return [...new Set(lists.flatMap((name) => Object.keys(item[name] ?? {})))].sort(compareText)
}

type Bound = 'min' | 'max' | 'default' | 'defaultRequest'

interface OrderRule {
  readonly lower: Bound
  readonly upper: Bound
  /** The list of the error, and the list with its value. */
  readonly field: Bound
  readonly shown: Bound
}

/** The pairs of which the first must not exceed the second. */
const orderRules: readonly OrderRule[] = [
  { lower: 'min', upper: 'max', field: 'min', shown: 'min' },
  { lower: 'min', upper: 'defaultRequest', field: 'defaultRequest', shown: 'defaultRequest' },
  { lower: 'defaultRequest', upper: 'max', field: 'defaultRequest', shown: 'defaultRequest' },
  { lower: 'defaultRequest', upper: 'default', field: 'defaultRequest', shown: 'defaultRequest' },
  { lower: 'min', upper: 'default', field: 'default', shown: 'min' },
  { lower: 'default', upper: 'max', field: 'default', shown: 'max' },
]

const words: Readonly<Record<Bound, string>> = {
  min: 'min value',
  max: 'max value',
  default: 'default value',
  defaultRequest: 'default request value',
}

type Amounts = Readonly<Partial<Record<(typeof listNames)[number], Quantity>>>

function validateAmounts(path: FieldPath, name: string, item: LimitRangeItem): FieldError[] {
  const isPod = item.type === 'Pod'
  const amount = (list: ResourceList | undefined): Quantity | undefined => {
    const text = amountOf(list, name)
    return text === undefined ? undefined : parseQuantity(text)
  }
  const amounts: Amounts = Object.fromEntries(
    listNames
      .filter((list) => !isPod || !list.startsWith('default'))
      .flatMap((list) => {
        const found = amount(item[list])
        return found === undefined ? [] : [[list, found] as const]
      }),
  )
  return [
    ...orderRules.flatMap((rule) => validateOrder(path, name, amounts, rule)),
    ...validateRatio(path.child('maxLimitRequestRatio').key(name), amounts),
    ...validateSameDefaults(path.child('defaultRequest').key(name), name, amounts),
  ]
}

function validateOrder(path: FieldPath, name: string, amounts: Amounts, rule: OrderRule): FieldError[] {
  const lower = amounts[rule.lower]
  const upper = amounts[rule.upper]
  const shown = amounts[rule.shown]
  if (lower === undefined || upper === undefined || shown === undefined || compareQuantities(lower, upper) <= 0)
    return []
  // One of the six texts calls the default a limit.
  const upperWords =
    rule.lower === 'defaultRequest' && rule.upper === 'default' ? 'default limit value' : words[rule.upper]
  const detail = `${words[rule.lower]} ${quantityText(lower)} is greater than ${upperWords} ${quantityText(upper)}`
  return [path.child(rule.field).key(name).invalid(quantityText(shown), detail)]
}

/** From here on thousandths exceed int64. */
const MAX_MILLI_VALUE = Number((2n ** 63n - 1n) / 1000n)

function validateRatio(path: FieldPath, { maxLimitRequestRatio: ratio, min, max }: Amounts): FieldError[] {
  if (ratio === undefined) return []
  const shown = quantityText(ratio)
  const errors =
    compareQuantities(ratio, quantityOf(1)) < 0 ? [path.invalid(shown, `ratio ${shown} is less than 1`)] : []
  if (min === undefined || max === undefined) return errors
  const fine = [ratio, min, max].every((one) => quantityValue(one) < MAX_MILLI_VALUE)
  const value = fine ? quantityMilliValue(ratio) / 1000 : quantityValue(ratio)
  const limit = fine ? quantityMilliValue(max) / quantityMilliValue(min) : quantityValue(max) / quantityValue(min)
  if (!(value > limit)) return errors
  return [...errors, path.invalid(shown, `ratio ${shown} is greater than max/min = ${fixedText(limit)}`)]
}

/** Go's `%f`. */
function fixedText(value: number): string {
  if (Number.isFinite(value)) return value.toFixed(6)
  return value > 0 ? '+Inf' : '-Inf'
}

function validateSameDefaults(path: FieldPath, name: string, amounts: Amounts): FieldError[] {
  const { default: limit, defaultRequest: request } = amounts
  if (isOvercommitAllowed(name) || limit === undefined || request === undefined) return []
  if (compareQuantities(limit, request) === 0) return []
  const [limitText, requestText] = [quantityText(limit), quantityText(request)]
  const detail = `default value ${limitText} must equal to defaultRequest value ${requestText} in ${name}`
  return [path.invalid(requestText, detail)]
}
