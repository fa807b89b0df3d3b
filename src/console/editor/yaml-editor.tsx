/** The YAML of an object: to read with managedFields folded, or to edit with a dry run and a comparison before it applies. */
import type { VNode } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import type { KubeObject } from '#meta/object.ts'

import { CopyButton } from '../parts/copy-button.tsx'
import { checkEdit } from './check-text.ts'
import type { CodeEditor } from './code-editor.ts'
import { Comparison } from './comparison.tsx'
import { dropDraft, readDraft } from './draft.ts'
import { EditorBox } from './editor-box.tsx'
import { OutcomeView } from './outcome-view.tsx'
import { type Editing, useEditing } from './use-editing.ts'
import { useSchema } from './use-schema.ts'
import { editable, readText, toYaml } from './yaml-text.ts'

export interface YamlEditorProps {
  readonly cluster: string
  readonly object: KubeObject
  /** The path of the object. */
  readonly path: string
  /** False: the object is gone, or the user may not change it. */
  readonly mayEdit: boolean
}

export function YamlEditor(props: YamlEditorProps): VNode {
  const [isEditing, setIsEditing] = useState(readDraft(props.path) !== undefined)
  if (isEditing) return <EditView {...props} close={() => setIsEditing(false)} />
  return <ReadView {...props} edit={() => setIsEditing(true)} />
}

function ReadView({ object, mayEdit, edit }: YamlEditorProps & { readonly edit: () => void }): VNode {
  const editor = useRef<CodeEditor>(null)
  const text = readText(object)
  useEffect(() => {
    if (editor.current === null) return
    if (editor.current.text() !== text) editor.current.setText(text)
    foldLong(editor.current, object)
  }, [object.metadata.resourceVersion])
  return (
    <section class="yaml" aria-label="YAML">
      <div class="yaml-bar">
        {mayEdit && (
          <button type="button" class="primary" onClick={edit}>
            Edit
          </button>
        )}
        <CopyButton text={toYaml(editable(object))} name="YAML" />
      </div>
      <EditorBox
        text={text}
        label="YAML of the object"
        isReadOnly
        onReady={(ready) => {
          editor.current = ready
          foldLong(ready, object)
        }}
      />
    </section>
  )
}

/** The values of a Secret are folded too, so that they are not seen by chance. */
function foldLong(editor: CodeEditor, { kind }: KubeObject): void {
  editor.fold('  managedFields:')
  if (kind !== 'Secret') return
  editor.fold('data:')
  // `kubectl apply` keeps a copy of the values in an annotation.
  editor.fold('  annotations:')
}

function EditView({ cluster, object, path, mayEdit, close }: YamlEditorProps & { readonly close: () => void }): VNode {
  const { apiVersion = '', kind = '' } = object
  const schema = useSchema(cluster, apiVersion, kind)
  const schemaNow = useRef(schema)
  schemaNow.current = schema
  const editing = useEditing({ object, path, draftKey: path, schema, stored: close })
  const { outcome, editor, firstText, changed, check, apply } = editing
  const discard = (): void => {
    dropDraft(path)
    close()
  }
  const isBusy = outcome.type === 'busy'
  return (
    <section class="yaml" aria-label="YAML">
      <div class="yaml-bar">
        {outcome.type === 'checked' ? (
          <button type="button" class="primary" disabled={!mayEdit} onClick={() => apply(outcome.isForced)}>
            Apply
          </button>
        ) : (
          <button type="button" class="primary" disabled={isBusy || !mayEdit} onClick={() => check(false)}>
            {isBusy ? 'Checking …' : 'Check and compare'}
          </button>
        )}
        <button type="button" onClick={discard}>
          Discard
        </button>
        <span class="muted">{schema === undefined ? '' : 'Ctrl-Space completes'}</span>
      </div>
      <ClashView editing={editing} />
      <OutcomeView outcome={outcome} takeOver={() => check(true)} />
      {outcome.type === 'checked' && (
        <Comparison
          live={editing.baseText}
          mine={editor.current?.text() ?? ''}
          result={toYaml(editable(outcome.sent.object))}
        />
      )}
      <EditorBox
        text={firstText}
        label="YAML to edit"
        isReadOnly={false}
        onChange={changed}
        schemaAt={() => schemaNow.current}
        check={(text) => checkEdit(text, object, schemaNow.current).problems}
        onReady={(ready) => (editor.current = ready)}
      />
    </section>
  )
}

function ClashView({ editing }: { readonly editing: Editing }): VNode | null {
  const { clash, editor, keepMine, baseText } = editing
  if (clash === undefined) return null
  return (
    <div class="stale-bar" role="alert">
      <p>The object has changed on the server in the lines that you edit.</p>
      <button type="button" onClick={keepMine}>
        Keep my lines
      </button>
      <Comparison live={toYaml(clash)} mine={editor.current?.text() ?? ''} result={baseText} />
    </div>
  )
}
