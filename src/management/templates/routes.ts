/** The routes of cluster templates. All users may read them: they have no keys and passwords. */
import { badRequestError, conflictError, forbiddenError, invalidError } from '#meta/status-errors.ts'
import { omitted } from '#meta/validation/field-path.ts'

import {
  type ClusterAccess,
  type PersonCall,
  personRoute,
  refuseUnknown,
  textField,
  viewOf,
} from '../clusters/requests.ts'
import { ClusterTemplates } from '../kinds/cluster-template.ts'
import { Clusters } from '../kinds/cluster.ts'
import { GROUP } from '../kinds/definition.ts'
import type { Reply, Route } from '../port/route.ts'
import { configOf, templateNamed } from './follow-template.ts'

const RESOURCE = { group: GROUP, resource: 'clustertemplates' }
const MAX_PATHS = 100
/** A cluster file may have thousands of lines. */
const MAX_BODY_BYTES = 1 << 20
const PATH = /^[A-Za-z_][\w-]*(?:\.[\w/-]+)*$/

export interface TemplateRoutesOptions extends ClusterAccess {
  /** The paths of keys and passwords in a cluster file. */
  readonly secretsIn: (config: Readonly<Record<string, unknown>>) => readonly string[]
}

export function templateRoutes(options: TemplateRoutesOptions): readonly Route[] {
  return [
    personRoute('GET', '/v3/cluster-templates', () => ({
      status: 200,
      body: { items: options.objects.list(ClusterTemplates).map((template) => viewOf(template)) },
    })),
    personRoute('POST', '/v3/cluster-templates', (call) => createTemplate(options, call)),
    personRoute('GET', '/v3/cluster-templates/:template', ({ params }) => ({
      status: 200,
      body: viewOf(templateNamed(options.objects, params['template'] ?? '')),
    })),
    personRoute('DELETE', '/v3/cluster-templates/:template', (call) => removeTemplate(options, call)),
  ]
}

async function createTemplate(
  { objects, permissions, secretsIn }: TemplateRoutesOptions,
  call: PersonCall,
): Promise<Reply> {
  const { user } = call.person
  if (!permissions.may(user, 'add', 'clustertemplates'))
    throw forbiddenError(RESOURCE, '', 'creating cluster templates needs the global role clustertemplates-create')
  const { displayName, description, file, editable, ...unknown } = await call.readBody(MAX_BODY_BYTES)
  refuseUnknown(unknown)
  if (typeof displayName !== 'string' || displayName === '') throw badRequestError('displayName must be a text')
  const config = configOf(file)
  refuseSecrets(secretsIn(config))
  const spec = {
    displayName,
    ...textField('description', description),
    config,
    editable: pathsOf(editable),
    createdBy: user.metadata.name ?? '',
  }
  return {
    status: 201,
    body: viewOf(await objects.create(ClusterTemplates, { metadata: { generateName: 'ct-' }, spec })),
  }
}

/** Its creator and administrators may do it, when no cluster follows it. */
async function removeTemplate({ objects, memberships }: ClusterAccess, call: PersonCall): Promise<Reply> {
  const { metadata, spec } = templateNamed(objects, call.params['template'] ?? '')
  const name = metadata.name ?? ''
  const { user } = call.person
  if (spec.createdBy !== user.metadata.name && !memberships.isAdministrator(user))
    throw forbiddenError(RESOURCE, name, 'only its creator and administrators may remove it')
  const follower = objects.list(Clusters).find((cluster) => cluster.spec.build?.template === name)
  if (follower !== undefined) throw conflictError(RESOURCE, name, `cluster "${follower.spec.displayName}" follows it`)
  await objects.delete(ClusterTemplates, name)
  return { status: 200, body: {} }
}

function pathsOf(value: unknown): readonly string[] {
  const isPath = (one: unknown): one is string => typeof one === 'string' && one.length < 254 && PATH.test(one)
  if (Array.isArray(value) && value.length <= MAX_PATHS && (value as unknown[]).every(isPath)) return value as string[]
  throw badRequestError('editable must be a list of paths, such as nodes or services.kubelet.extra_args')
}

function refuseSecrets(paths: readonly string[]): void {
  if (paths.length === 0) return
  const detail = 'templates have no keys and passwords; make the path editable'
  const errors = paths.map((path) => ({
    type: 'FieldValueInvalid' as const,
    field: `file.${path}`,
    badValue: omitted,
    detail,
  }))
  throw invalidError({ group: GROUP, kind: 'ClusterTemplate' }, '', errors)
}
