/** The schemas of all kinds in a text of several objects, read as the text names them. */
import { useMemo } from 'preact/hooks'

import { schemaProblems } from './check-text.ts'
import { loadSchemas } from './load-schema.ts'
import { schemaOfKind, type Schemas } from './schema.ts'
import type { KindSchema } from './suggest.ts'
import { parseDocuments, type Problem } from './yaml-text.ts'

export interface TextSchemas {
  readonly schemaAt: (text: string, offset: number) => KindSchema | undefined
  readonly check: (text: string) => readonly Problem[]
}

export function useSchemas(cluster: string): TextSchemas {
  return useMemo(() => schemasOf(cluster), [cluster])
}

function schemasOf(cluster: string): TextSchemas {
  const loaded = new Map<string, Schemas>()
  const find = (apiVersion: string, kind: string): KindSchema | undefined => {
    const schemas = loaded.get(apiVersion)
    if (schemas === undefined && apiVersion !== '') {
      loaded.set(apiVersion, {})
      loadSchemas(cluster, apiVersion).then(
        (found) => loaded.set(apiVersion, found),
        () => loaded.delete(apiVersion),
      )
    }
    const root = schemas && schemaOfKind(schemas, apiVersion, kind)
    return root && schemas && { schemas, root }
  }
  return {
    schemaAt: (text, offset) => find(...kindAt(text, offset)),
    check: (text) =>
      parseDocuments(text).flatMap((document) => {
        const { apiVersion = '', kind = '' } = document.object ?? {}
        return [...document.problems, ...schemaProblems(document, find(apiVersion, kind))]
      }),
  }
}

/** The kind of the document around an offset, also while its text is not valid. */
export function kindAt(text: string, offset: number): readonly [apiVersion: string, kind: string] {
  const start = Math.max(0, text.slice(0, offset).lastIndexOf('\n---'))
  const end = text.indexOf('\n---', Math.max(offset, start + 1))
  const document = text.slice(start, end < 0 ? undefined : end)
  const field = (name: string): string => new RegExp(`^${name}: *["']?([\\w./-]+)`, 'm').exec(document)?.[1] ?? ''
  return [field('apiVersion'), field('kind')]
}
