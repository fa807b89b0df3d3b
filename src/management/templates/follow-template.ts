/** Makes the file of a cluster that follows a template. */
import { isJsonObject } from '#lib/json/value.ts'
import { parseYaml } from '#lib/yaml/yaml.ts'
import { badRequestError, invalidError, notFoundError } from '#meta/status-errors.ts'
import { omitted } from '#meta/validation/field-path.ts'

import { type ClusterTemplate, ClusterTemplates } from '../kinds/cluster-template.ts'
import { GROUP } from '../kinds/definition.ts'
import type { ManagementObjects } from '../objects.ts'
import { joinTemplate } from './template-file.ts'

/**
 * The file itself without a template. Otherwise the template with the editable parts of the file. Throws StatusError: 404 for an
 * unknown template, 400 for a file that is none, 422 with the locked paths at which it differs.
 */
export function followTemplate(
  objects: Pick<ManagementObjects, 'get'>,
  template: string | undefined,
  file: unknown,
): unknown {
  if (template === undefined) return file
  const { config, locked } = joinTemplate(templateNamed(objects, template).spec, configOf(file))
  if (locked.length === 0) return config
  const detail = `the template "${template}" does not let it differ`
  const errors = locked.map((path) => ({
    type: 'FieldValueForbidden' as const,
    field: `file.${path}`,
    badValue: omitted,
    detail,
  }))
  throw invalidError({ group: GROUP, kind: 'Cluster' }, '', errors)
}

/** Throws StatusError 404. */
export function templateNamed(objects: Pick<ManagementObjects, 'get'>, name: string): ClusterTemplate {
  const found = objects.get(ClusterTemplates, name)
  if (found === undefined) throw notFoundError({ group: GROUP, resource: 'clustertemplates' }, name)
  return found
}

/** The text of a cluster file, or an object. Throws StatusError 400. */
export function configOf(file: unknown): Readonly<Record<string, unknown>> {
  const value = typeof file === 'string' ? parsed(file) : file
  if (isJsonObject(value)) return value
  throw badRequestError('file must be the text of a cluster.yml, or an object')
}

function parsed(text: string): unknown {
  try {
    return parseYaml(text)
  } catch (error) {
    throw badRequestError(`file is not valid YAML: ${(error as Error).message}`)
  }
}
