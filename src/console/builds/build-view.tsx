/** Builds a cluster: a form writes the cluster file of the usual case, and the editor has everything else. */
import type { ComponentChildren, VNode } from 'preact'
import { useRef, useState } from 'preact/hooks'

import { CLUSTERS_PATH } from '../api/cluster-paths.ts'
import { RequestError, sendForJson } from '../api/request.ts'
import { hasRight } from '../browser/session.ts'
import type { CodeEditor } from '../editor/code-editor.ts'
import { EditorBox } from '../editor/editor-box.tsx'
import type { Problem } from '../editor/yaml-text.ts'
import { SelectField } from '../forms/choices.tsx'
import { Notice } from '../parts/notice.tsx'
import { go } from '../routing/router.tsx'
import { MoreFields, NameFields, settingsIn } from './build-settings.tsx'
import { type FileDraft, fileOf, gapsIn, NEW_MACHINE } from './cluster-file.ts'
import { FaultList, Refusal } from './fault-list.tsx'
import { faultsOf } from './file-schema.ts'
import { MachineRows } from './machine-rows.tsx'
import { useFileEditing } from './use-file-editing.ts'

const FIRST: FileDraft = { machines: [NEW_MACHINE], network: '' }

export function BuildView(): VNode {
  if (!hasRight('add clusters'))
    return (
      <Notice title="You may not create clusters" text="Creating clusters needs the global role clusters-create." />
    )
  return <BuildForm />
}

function BuildForm(): VNode {
  const editor = useRef<CodeEditor>(null)
  const [draft, setDraft] = useState(FIRST)
  /** The text differs from what the form wrote. */
  const [isOwn, setIsOwn] = useState(false)
  const written = useRef(fileOf(FIRST))
  const write = (next: FileDraft): void => {
    written.current = fileOf(next)
    editor.current?.setText(written.current)
    setIsOwn(false)
  }
  const change = (next: FileDraft): void => {
    setDraft(next)
    if (!isOwn) write(next)
  }
  return (
    <BuildSubmit
      text={() => editor.current?.text() ?? written.current}
      gaps={isOwn ? [] : gapsIn(draft)}
      mark={(problems) => editor.current?.mark(problems)}
    >
      <h2>Machines</h2>
      <MachineRows machines={draft.machines} onChange={(machines) => change({ ...draft, machines })} />
      <SelectField
        name="network"
        label="Network"
        choices={NETWORKS}
        value={draft.network}
        onChange={(network) => change({ ...draft, network })}
      />
      <FileField
        text={written.current}
        isOwn={isOwn}
        writeAgain={() => write(draft)}
        onChange={(text) => setIsOwn(text !== written.current)}
        onReady={(ready) => (editor.current = ready)}
      />
    </BuildSubmit>
  )
}

interface FileFieldProps {
  /** At first. */
  readonly text: string
  /** The user has changed what the form wrote. */
  readonly isOwn: boolean
  readonly writeAgain: () => void
  readonly onChange: (text: string) => void
  readonly onReady: (editor: CodeEditor) => void
}

function FileField({ text, isOwn, writeAgain, onChange, onReady }: FileFieldProps): VNode {
  const editing = useFileEditing()
  return (
    <>
      <h2>Cluster file</h2>
      <p class="muted">
        {isOwn
          ? 'You have changed the text, so the form does not write it any more. '
          : 'The form writes it. Add anything else here, with completion by Ctrl-Space. '}
        {isOwn && (
          <button type="button" onClick={writeAgain}>
            Write it again from the form
          </button>
        )}
      </p>
      <EditorBox
        text={text}
        label="Cluster file"
        isReadOnly={false}
        {...editing}
        onChange={onChange}
        onReady={onReady}
      />
    </>
  )
}

const NETWORKS = [
  { value: '', text: 'Default: flannel with network policies' },
  { value: 'flannel', text: 'flannel without network policies' },
  { value: 'none', text: 'None: install your own' },
]

interface BuildSubmitProps {
  readonly text: () => string
  /** What the form still needs. */
  readonly gaps: readonly string[]
  readonly mark: (problems: readonly Problem[]) => void
  readonly children: ComponentChildren
}

/** The fields around the file, and the button that creates the cluster. */
function BuildSubmit({ text, gaps, mark, children }: BuildSubmitProps): VNode {
  const [isBusy, setIsBusy] = useState(false)
  const [refusal, setRefusal] = useState<RequestError>()
  const [missing, setMissing] = useState<readonly string[]>([])
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const settings = settingsIn(event.currentTarget as HTMLFormElement)
    setMissing(gaps)
    setRefusal(undefined)
    mark([])
    if (gaps.length > 0) return
    setIsBusy(true)
    createCluster(settings, text())
      .then(
        (item) => go({ page: 'server-view', view: 'clusters', item }, { tab: 'operations' }),
        (error: unknown) => {
          if (!(error instanceof RequestError)) throw error
          setRefusal(error)
          mark(faultsOf(error, text()))
        },
      )
      .finally(() => setIsBusy(false))
  }
  return (
    <form class="form build-form" aria-label="Build a cluster" onSubmit={submit}>
      <NameFields />
      {children}
      <MoreFields />
      <FaultList title="The form is not complete" faults={missing} />
      {refusal && <Refusal error={refusal} />}
      <div class="form-actions">
        <button type="submit" class="primary" disabled={isBusy}>
          Create the cluster
        </button>
        <span class="muted">The server plans first. Without your approval it changes nothing on the machines.</span>
      </div>
    </form>
  )
}

interface Created {
  readonly cluster: { readonly metadata: { readonly name: string } }
}

async function createCluster(settings: object, file: string): Promise<string> {
  const body = { ...settings, source: 'built', file }
  const { cluster } = await sendForJson<Created>(CLUSTERS_PATH, { method: 'POST', body })
  return cluster.metadata.name
}
