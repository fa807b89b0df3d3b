/** The state of an edit: text, the live object it began with, the answer of the server. */
import { type RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import type { KubeObject } from '#meta/object.ts'

import { RequestError } from '../api/request.ts'
import { type EditPlan, equal, planEdit } from './changes.ts'
import { checkEdit } from './check-text.ts'
import type { CodeEditor } from './code-editor.ts'
import { dropDraft, keepDraft, readDraft } from './draft.ts'
import { ownersOf } from './field-owners.ts'
import { mergeLines } from './merge-lines.ts'
import { type Conflict, conflictsOf, problemsOf, sendEdit, type Sent } from './send-edit.ts'
import type { KindSchema } from './suggest.ts'
import { editable, toYaml } from './yaml-text.ts'

export type Outcome =
  | { readonly type: 'writing' }
  | { readonly type: 'busy' }
  | { readonly type: 'nothing' }
  /** The dry run succeeded. */
  | { readonly type: 'checked'; readonly sent: Sent; readonly isForced: boolean }
  | { readonly type: 'refused'; readonly message: string; readonly conflicts: readonly Conflict[] }

export interface Editing {
  readonly firstText: string
  readonly editor: RefObject<CodeEditor | null>
  readonly outcome: Outcome
  /** The live object when it has changed in the lines that the user edits. */
  readonly clash: KubeObject | undefined
  readonly baseText: string
  readonly changed: (text: string) => void
  readonly check: (isForced: boolean) => void
  readonly apply: (isForced: boolean) => void
  readonly keepMine: () => void
}

export interface EditingOptions {
  readonly object: KubeObject
  /** The path of the object. */
  readonly path: string
  readonly draftKey: string
  readonly schema: KindSchema | undefined
  /** Called when the edit is stored. */
  readonly stored: () => void
}

export function useEditing(options: EditingOptions): Editing {
  const { object, draftKey, stored } = options
  const editor = useRef<CodeEditor>(null)
  const [first] = useState(() => readDraft(draftKey) ?? { text: toYaml(editable(object)), base: editable(object) })
  const base = useRef<KubeObject>(first.base ?? editable(object))
  const [outcome, setOutcome] = useState<Outcome>({ type: 'writing' })
  const [clash, setClash] = useState<KubeObject>()
  const changed = (text: string): void => {
    keepDraft(draftKey, { text, base: base.current })
    setOutcome({ type: 'writing' })
  }
  const { resourceVersion } = object.metadata
  useEffect(() => {
    const live = editable(object)
    if (editor.current === null || equal(live, base.current)) return
    const changes = mergeLines(toYaml(base.current), editor.current.text(), toYaml(live))
    setClash(changes === undefined ? live : undefined)
    if (changes === undefined) return
    base.current = live
    editor.current.change(changes)
  }, [resourceVersion])
  const submit = async (isForced: boolean, isDryRun: boolean): Promise<void> => {
    if (editor.current === null) return
    setOutcome({ type: 'busy' })
    const next = await submitEdit({ ...options, editor: editor.current, base: base.current, isForced, isDryRun })
    if (next === undefined) stored()
    else setOutcome(next)
  }
  return {
    firstText: first.text,
    editor,
    outcome,
    clash,
    baseText: toYaml(base.current),
    changed,
    check: (isForced) => void submit(isForced, true),
    apply: (isForced) => void submit(isForced, false),
    keepMine: () => {
      base.current = editable(object)
      setClash(undefined)
    },
  }
}

interface Submission extends EditingOptions {
  readonly editor: CodeEditor
  readonly base: KubeObject
  readonly isForced: boolean
  readonly isDryRun: boolean
}

/** Undefined: the edit is stored. */
async function submitEdit(submission: Submission): Promise<Outcome | undefined> {
  const { object, schema, editor, base, isForced, isDryRun, path, draftKey } = submission
  const { document, problems } = checkEdit(editor.text(), base, schema)
  editor.mark(problems)
  const mine = document?.object
  // The schema can be stricter than the server: only the server's word counts in the end.
  if (mine === undefined)
    return { type: 'refused', message: problems[0]?.message ?? 'The text has errors', conflicts: [] }
  const { managedFields } = object.metadata
  const plan = planEdit({ base, mine: editable(mine), managedFields, ...schema })
  if (plan.type === 'nothing') return { type: 'nothing' }
  const conflicts = plan.type === 'patch' && !isForced ? ownersOf(object, plan.paths) : []
  if (conflicts.length > 0) return { type: 'refused', message: conflictText(conflicts), conflicts }
  try {
    const sent = await sendEdit(path, plan, { isDryRun, isForced })
    if (isDryRun) return { type: 'checked', sent, isForced }
    dropDraft(draftKey)
    return undefined
  } catch (error) {
    if (!(error instanceof RequestError)) throw error
    editor.mark(problemsOf(error, document))
    return { type: 'refused', message: refusalText(error, plan), conflicts: conflictsOf(error.status) }
  }
}

function conflictText(conflicts: readonly Conflict[]): string {
  const [only] = conflicts
  const what = conflicts.length === 1 ? 'a field' : 'fields'
  return `${only?.manager ?? 'Another manager'} applies ${what} that you remove, and may put ${conflicts.length === 1 ? 'it' : 'them'} back`
}

function refusalText({ message, code }: RequestError, { type }: EditPlan): string {
  const isTest = type === 'patch' && code === 422 && message.includes('test')
  return isTest ? `Another client changed these fields meanwhile. ${message}` : message
}
