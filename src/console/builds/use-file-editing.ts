/** The schema of cluster files for an editor, once the server has sent it. */
import { useEffect, useMemo } from 'preact/hooks'

import { sendForJson } from '../api/request.ts'
import type { CodeEditorOptions } from '../editor/code-editor.ts'
import type { Schema } from '../editor/schema.ts'
import { editorSchema, fileProblems, type JsonSchema } from './file-schema.ts'

export type FileEditing = Required<Pick<CodeEditorOptions, 'schemaAt' | 'check'>>

/** Without a schema the editor still checks the YAML. */
export function useFileEditing(): FileEditing {
  const found = useMemo<{ root?: Schema }>(() => ({}), [])
  useEffect(() => {
    sendForJson<JsonSchema>('/v3/cluster-file-schema').then(
      (schema) => (found.root = editorSchema(schema)),
      () => undefined,
    )
  }, [found])
  return useMemo(
    () => ({
      schemaAt: () => found.root && { schemas: {}, root: found.root },
      check: (text) => fileProblems(text, found.root),
    }),
    [found],
  )
}
