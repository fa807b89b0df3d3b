/** Checks an edited text before it is sent: YAML, kind and name, and the schema. */
import type { KubeObject } from '#meta/object.ts'

import { lintValue } from './lint-schema.ts'
import type { KindSchema } from './suggest.ts'
import { type ParsedDocument, parseDocuments, type Problem } from './yaml-text.ts'

export interface CheckedText {
  readonly document: ParsedDocument | undefined
  readonly problems: readonly Problem[]
}

/** The text of one object. `base` is the object that it edits: it stays the same object. */
export function checkEdit(text: string, base: KubeObject, schema: KindSchema | undefined): CheckedText {
  const documents = parseDocuments(text)
  const [document, second] = documents
  if (document === undefined) return { document, problems: [{ message: 'The text is empty', from: 0, to: 0 }] }
  if (second !== undefined)
    return { document, problems: [{ message: 'This page edits one object: remove the second', ...second.rangeOf([]) }] }
  return {
    document,
    problems: [...document.problems, ...identityProblems(document, base), ...schemaProblems(document, schema)],
  }
}

function identityProblems(document: ParsedDocument, base: KubeObject): readonly Problem[] {
  const { object } = document
  if (object === undefined) return []
  const parts = [
    { path: ['apiVersion'], is: object.apiVersion, was: base.apiVersion },
    { path: ['kind'], is: object.kind, was: base.kind },
    { path: ['metadata', 'name'], is: object.metadata.name, was: base.metadata.name },
    { path: ['metadata', 'namespace'], is: object.metadata.namespace, was: base.metadata.namespace },
  ]
  return parts
    .filter(({ is, was }) => is !== was)
    .map(({ path, was = '' }) => ({
      message: `${path.join('.')} must stay "${was}"; create another object instead`,
      ...document.rangeOf(path),
    }))
}

export function schemaProblems(document: ParsedDocument, schema: KindSchema | undefined): readonly Problem[] {
  if (schema === undefined || document.object === undefined) return []
  const found = lintValue(schema.schemas, schema.root, document.object)
  return found.map(({ path, message }) => ({ message, ...document.rangeOf(path) }))
}
