/** The IngressClass resource: names the controller of the Ingresses that refer to it. */
import { type IngressClass, IngressClasses, type IngressClassParametersReference } from '#apis/networking/v1.ts'
import { ageColumn } from '#apiserver/registry/columns.ts'
import { defineResource, type Resource } from '#apiserver/registry/resource.ts'
import { byteLength } from '#lib/go/text.ts'
import { collectErrors, type FieldError, fieldPath } from '#meta/validation/field-path.ts'
import { nameIsLabel } from '#meta/validation/names.ts'
import { immutable, validateDomainPrefixedPath } from '#meta/validation/rules.ts'

import { validateTypedReference } from './typed-reference.ts'

const MAX_CONTROLLER_BYTES = 250
const DEFAULT_ANNOTATION = 'ingressclass.kubernetes.io/is-default-class'

export const ingressClass: Resource<IngressClass> = defineResource<IngressClass>({
  kind: IngressClasses,
  metadataRules: { update: ['change', 'whole'] },
  generation: 'spec',
  applyDefaults({ spec: { parameters } }) {
    if (parameters !== undefined) parameters.scope ??= 'Cluster'
  },
  validate: validateClass,
  validateUpdate: (next, old) => [
    ...immutable(fieldPath('spec.controller'), next.spec.controller ?? '', old.spec.controller ?? ''),
    ...validateClass(next),
  ],
  columns: [
    { name: 'Name', format: 'name', value: nameText },
    { name: 'Controller', value: ({ spec }) => spec.controller ?? '' },
    { name: 'Parameters', value: ({ spec }) => parametersText(spec.parameters) },
    ageColumn,
  ],
})

function validateClass({ spec: { controller = '', parameters } }: IngressClass): FieldError[] {
  return collectErrors(
    byteLength(controller) > MAX_CONTROLLER_BYTES && fieldPath('spec.controller').tooLong(MAX_CONTROLLER_BYTES),
    validateDomainPrefixedPath(fieldPath('spec.controller'), controller),
    parameters !== undefined && validateParameters(parameters),
  )
}

const scopes = ['Cluster', 'Namespace']

function validateParameters(parameters: IngressClassParametersReference): FieldError[] {
  const { scope, namespace } = parameters
  const errors = validateTypedReference(fieldPath('spec.parameters'), parameters)
  if (scope === undefined || scope === null) return [...errors, fieldPath('spec.parameters.scope').required()]
  if (!scopes.includes(scope)) return [...errors, fieldPath('spec.parameters.scope').notInSet(scope, scopes)]
  const field = fieldPath('spec.parameters.namespace')
  if (scope === 'Cluster') {
    return namespace === undefined ? errors : [...errors, field.forbidden("`parameters.scope` is set to 'Cluster'")]
  }
  return namespace === undefined
    ? [...errors, field.required("`parameters.scope` is set to 'Namespace'")]
    : [...errors, ...field.check(namespace, () => nameIsLabel(namespace, false))]
}

function nameText({ metadata: { name = '', annotations } }: IngressClass): string {
  return annotations?.[DEFAULT_ANNOTATION] === 'true' ? `${name} (default)` : name
}

function parametersText(parameters: IngressClassParametersReference | undefined): string {
  if (parameters === undefined) return '<none>'
  const { kind, apiGroup, name } = parameters
  return `${kind}${apiGroup === undefined ? '' : `.${apiGroup}`}/${name}`
}
