/** Validates the spec of a CustomResourceDefinition: names, versions, conversion. */
import type {
  CustomResourceConversion,
  CustomResourceDefinitionNames,
  CustomResourceDefinitionSpec,
} from '#apis/apiextensions/v1.ts'
import { byteLength, isPrintable } from '#lib/go/text.ts'
import { createRepetition } from '#lib/repetition.ts'
import { flatMapSteps, type Steps } from '#lib/time-slicing.ts'
import { asJson, collectErrors, type FieldError, fieldPath, type FieldPath } from '#meta/validation/field-path.ts'
import { dns1035Label, dns1123Subdomain } from '#meta/validation/names.ts'
import { someSchema } from '#model/custom/schema-walk.ts'

import { validateWebhookClient } from '../../webhook-client.ts'
import { definitionOf, type DefinedVersion, type Definition, hasAnyStatus, hasStatus } from './definition.ts'
import { internalVersions } from './internal-form.ts'
import type { SchemaOptions } from './schema-rules.ts'
import {
  validateColumn,
  validateSelectableFields,
  validateSubresources,
  validateVersionSchema,
} from './version-parts.ts'

/** Faults that an update may keep, because the old object has them. */
export interface SpecOptions extends SchemaOptions {
  readonly openApiSchema: boolean
  readonly structural: boolean
  readonly prunedDefaults: boolean
  readonly reviewVersion: boolean
  readonly soundCaBundle: boolean
  /** Versions that may exceed the limit of selectable fields; the empty name stands for all. */
  readonly manySelectable: ReadonlySet<string>
  /** Versions with unchanged schemas. */
  readonly unchanged: ReadonlySet<string>
}

/** Joins all errors in one, like upstream. */
function joined(path: FieldPath, value: string, complaints: readonly string[], intro = ''): FieldError[] {
  return complaints.length === 0 ? [] : [path.invalid(value, `${intro}${complaints.join(',')}`)]
}

export function* validateSpec(spec: CustomResourceDefinitionSpec, given: SpecOptions): Steps<FieldError[]> {
  const definition = definitionOf(spec)
  yield
  const { common, versions, preservesUnknown } = definition
  const options = { ...given, structural: given.structural || !preservesUnknown || needsStructure(definition) }
  const firstName = versions[0]?.name ?? ''
  return collectErrors(
    validateGroup(spec.group),
    validateScope(spec.scope),
    validateSchemaPresence(definition, options),
    preservesUnknown &&
      hasDefaults(definition) &&
      fieldPath('spec.preserveUnknownFields').invalid(true, 'must be false in order to use defaults in the schema'),
    yield* flatMapSteps(versions, (version, at) =>
      validateVersion(fieldPath('spec.versions').index(at), version, definition, options),
    ),
    validateVersionSet(versions),
    joined(fieldPath('spec.version'), firstName, firstName === '' ? [] : dns1035Label(firstName)),
    (['plural', 'singular', 'kind', 'listKind'] as const)
      .filter((name) => (spec.names[name] ?? '') === '')
      .map((name) => fieldPath(`spec.names.${name}`).required()),
    validateNames(fieldPath('spec.names'), spec.names),
    yield* validateVersionSchema(fieldPath('spec.validation'), common.schema, hasAnyStatus(definition), {
      ...options,
      costsAnything: options.unchanged.has(firstName),
    }),
    validateSubresources(fieldPath('spec.subresources'), common.subresources),
    fieldPath('spec.additionalPrinterColumns').each(common.additionalPrinterColumns, validateColumn),
    validateCommonSelectable(definition, options),
    validateConversion(definition, options),
  )
}

function validateGroup(group: string): FieldError[] {
  if (group === '') return [fieldPath('spec.group').required()]
  const errors = joined(fieldPath('spec.group'), group, dns1123Subdomain(group))
  if (errors.length > 0 || group.includes('.')) return errors
  return [fieldPath('spec.group').invalid(group, 'should be a domain with at least one dot')]
}

const scopes = ['Cluster', 'Namespaced']

function validateScope(scope: string): FieldError[] {
  if (scope === '') return [fieldPath('spec.scope').required()]
  return scopes.includes(scope) ? [] : [fieldPath('spec.scope').notSupported(scope, scopes)]
}

function schemasIn({ common, versions }: Definition): DefinedVersion['schema'][] {
  return [common.schema, ...versions.map(({ schema }) => schema)]
}

function hasDefaults(definition: Definition): boolean {
  return schemasIn(definition).some(
    (one) =>
      one?.openAPIV3Schema !== undefined &&
      someSchema(one.openAPIV3Schema, (schema) => (schema.default ?? null) !== null),
  )
}

const extensions = [
  'x-kubernetes-embedded-resource',
  'x-kubernetes-preserve-unknown-fields',
  'x-kubernetes-int-or-string',
  'x-kubernetes-list-map-keys',
  'x-kubernetes-list-type',
  'x-kubernetes-validations',
] as const

function needsStructure(definition: Definition): boolean {
  return schemasIn(definition).some(
    (one) =>
      one?.openAPIV3Schema !== undefined &&
      someSchema(
        one.openAPIV3Schema,
        (schema) => (schema.default ?? null) !== null || extensions.some((name) => schema[name] !== undefined),
      ),
  )
}

function validateSchemaPresence(
  { common, versions, preservesUnknown }: Definition,
  options: SpecOptions,
): FieldError[] {
  if (common.schema?.openAPIV3Schema !== undefined) return []
  const detail = options.openApiSchema ? '' : 'because otherwise all fields are pruned'
  if (!options.openApiSchema && preservesUnknown) return []
  return versions.flatMap(({ schema, served }, at) =>
    schema?.openAPIV3Schema === undefined && (options.openApiSchema || served)
      ? [fieldPath(`spec.versions[${at}].schema.openAPIV3Schema`).required(detail)]
      : [],
  )
}

function* validateVersion(
  path: FieldPath,
  version: DefinedVersion,
  definition: Definition,
  options: SpecOptions,
): Steps<FieldError[]> {
  const { name, schema, selectableFields = [] } = version
  const field = path.child('selectableFields')
  const openApi = schema?.openAPIV3Schema
  const selectable =
    openApi === undefined
      ? [field.invalid('', 'may only be set when `version.schema.openAPIV3Schema` is not included')]
      : validateSelectableFields(field, selectableFields, openApi, options.manySelectable.has(name))
  return collectErrors(
    joined(path.child('name'), name, dns1035Label(name)),
    validateDeprecation(path.child('deprecationWarning'), version),
    yield* validateVersionSchema(path.child('schema'), schema, hasStatus(definition, version), {
      ...options,
      costsAnything: options.unchanged.has(name),
    }),
    validateSubresources(path.child('subresources'), version.subresources),
    path.child('additionalPrinterColumns').each(version.additionalPrinterColumns, validateColumn),
    selectableFields.length !== 0 && selectable,
  )
}

const MAX_WARNING_BYTES = 256

function validateDeprecation(
  path: FieldPath,
  { deprecated, deprecationWarning: warning }: DefinedVersion,
): FieldError[] {
  if (warning === undefined) return []
  if (deprecated !== true) return [path.invalid(warning, 'can only be set for deprecated versions')]
  const complaints: string[] = []
  if (byteLength(warning) > MAX_WARNING_BYTES) complaints.push(`must be <= ${MAX_WARNING_BYTES} characters long`)
  if (warning === '') complaints.push('must not be an empty string')
  let position = 0
  for (const char of warning) {
    if (!isPrintable(char)) {
      const detail = `non-printable character found at index ${position}`
      complaints.push(`must only contain printable UTF-8 characters; ${detail}`)
      break
    }
    position += byteLength(char)
  }
  return path.check(warning, () => complaints)
}

function validateVersionSet(versions: readonly DefinedVersion[]): FieldError[] {
  const names = new Set(versions.map(({ name }) => name))
  const stored = versions.filter(({ storage }) => storage)
  const wrong = (detail: string): FieldError => fieldPath('spec.versions').invalid(internalVersions(versions), detail)
  return collectErrors(
    names.size < versions.length && wrong('must contain unique version names'),
    stored.length !== 1 && wrong('must have exactly one version marked as storage version'),
  )
}

/** Also validates status.acceptedNames. Empty names are accepted. */
export function validateNames(path: FieldPath, names: CustomResourceDefinitionNames): FieldError[] {
  const { plural, singular = '', kind, listKind = '', shortNames = [], categories = [] } = names
  const mixed = 'may have mixed case, but should otherwise match: '
  const label = (name: string, value: string): FieldError[] =>
    value === '' ? [] : joined(path.child(name), value, dns1035Label(value))
  const kindLabel = (name: string, value: string): FieldError[] =>
    value === '' ? [] : joined(path.child(name), value, dns1035Label(value.toLowerCase()), mixed)
  const each = (name: string, values: readonly string[]): FieldError[] =>
    path.child(name).each(values, (path, value) => joined(path, value, dns1035Label(value)))
  return collectErrors(
    label('plural', plural),
    label('singular', singular),
    kindLabel('kind', kind),
    kindLabel('listKind', listKind),
    each('shortNames', shortNames),
    kind !== '' &&
      kind === listKind &&
      path.child('listKind').invalid(listKind, 'kind and listKind may not be the same'),
    each('categories', categories),
  )
}

function validateCommonSelectable({ common }: Definition, options: SpecOptions): FieldError[] {
  const { schema, selectableFields = [] } = common
  if (selectableFields.length === 0) return []
  const field = fieldPath('spec.selectableFields')
  const openApi = schema?.openAPIV3Schema
  if (openApi === undefined) return [field.invalid('', 'may only be set when validations.schema is included')]
  return validateSelectableFields(field, selectableFields, openApi, options.manySelectable.has(''))
}

const strategies = ['None', 'Webhook']
const reviewVersions = ['v1', 'v1beta1']

export function isKnownReviewVersion(version: string): boolean {
  return reviewVersions.includes(version)
}

function validateConversion({ conversion, preservesUnknown }: Definition, options: SpecOptions): FieldError[] {
  if (conversion === undefined) return []
  const { strategy } = conversion
  const field = fieldPath('spec.conversion.strategy')
  const unknown = strategies.includes(strategy) ? [] : [field.notSupported(strategy, strategies)]
  return collectErrors(
    strategy !== 'None' &&
      preservesUnknown &&
      field.invalid(asJson(strategy), 'must be None if spec.preserveUnknownFields is true'),
    strategy === '' ? field.required() : unknown,
    strategy === 'Webhook' ? validateWebhook(conversion, options) : validateNoWebhook(conversion),
  )
}

const CLIENT = fieldPath('spec.conversion.webhookClientConfig')
const VERSIONS = fieldPath('spec.conversion.conversionReviewVersions')

function validateWebhook({ webhook }: CustomResourceConversion, options: SpecOptions): FieldError[] {
  const client = webhook?.clientConfig
  const bundle = client?.caBundle ?? ''
  const badBundle = options.soundCaBundle && bundle !== '' && !hasCertificate(bundle)
  return collectErrors(
    client === undefined && CLIENT.required('required when strategy is set to Webhook'),
    client !== undefined && validateWebhookClient(CLIENT, client),
    badBundle &&
      CLIENT.child('caBundle').invalid(
        asJson(bundle),
        'unable to load root certificates: unable to parse bytes as PEM block',
      ),
    validateReviewVersions(webhook?.conversionReviewVersions ?? [], options),
  )
}

/** In base64, as in objects. */
export function hasCertificate(bundle: string): boolean {
  return Buffer.from(bundle, 'base64').includes('-----BEGIN CERTIFICATE-----')
}

function validateReviewVersions(versions: readonly string[], options: SpecOptions): FieldError[] {
  if (versions.length === 0) return [VERSIONS.required()]
  const isRepeated = createRepetition()
  const errors = VERSIONS.each(versions, (path, version) =>
    isRepeated(version) ? [path.invalid(version, 'duplicate version')] : path.check(version, dns1035Label),
  )
  if (!options.reviewVersion || versions.some(isKnownReviewVersion)) return errors
  return [...errors, VERSIONS.invalid(versions, `must include at least one of ${reviewVersions.join(', ')}`)]
}

function validateNoWebhook({ webhook }: CustomResourceConversion): FieldError[] {
  const detail = 'should not be set when strategy is not set to Webhook'
  return collectErrors(
    webhook?.clientConfig !== undefined && CLIENT.forbidden(detail),
    (webhook?.conversionReviewVersions ?? []).length !== 0 && VERSIONS.forbidden(detail),
  )
}
