/** The cluster file of a built cluster: an editor, the difference before it is saved, and the private files. */
import type { VNode } from 'preact'
import { useRef, useState } from 'preact/hooks'

import type { KubeObject } from '#meta/object.ts'

import { RequestError, send, sendForJson } from '../api/request.ts'
import type { CodeEditor } from '../editor/code-editor.ts'
import { dropDraft, keepDraft, readDraft } from '../editor/draft.ts'
import { EditorBox } from '../editor/editor-box.tsx'
import { TextDifference } from '../editor/text-difference.tsx'
import { buildRoute } from '../operations/operation-requests.ts'
import { SshKeyBox } from '../operations/ssh-key-box.tsx'
import { LoadedView } from '../parts/loaded-view.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import { go } from '../routing/router.tsx'
import { textOfFile, withMachine } from './cluster-file.ts'
import { Refusal } from './fault-list.tsx'
import { faultsOf } from './file-schema.ts'
import { PrivateFiles } from './private-files.tsx'
import { RegisteredMachines } from './registered-machines.tsx'
import { useFileEditing } from './use-file-editing.ts'

export interface BuildShown {
  readonly file?: unknown
  readonly template?: string
  readonly approval: 'Automatic' | 'Manual'
  /** The paths of keys and passwords. */
  readonly secrets: readonly string[]
  readonly sshPublicKey?: string
}

export interface FileTabProps {
  readonly cluster: KubeObject
}

export function FileTab({ cluster }: FileTabProps): VNode {
  const name = cluster.metadata.name ?? ''
  const build = useLoaded(name, (signal) => sendForJson<BuildShown>(buildRoute(name, 'build'), { signal }))
  return (
    <LoadedView of={build} name="parts of the cluster file">
      {(shown) => (
        <>
          <FileEditor cluster={name} build={shown} />
          <div class="boxes">
            {shown.sshPublicKey !== undefined && <SshKeyBox publicKey={shown.sshPublicKey} cluster={name} />}
            <PrivateFiles cluster={name} />
          </div>
        </>
      )}
    </LoadedView>
  )
}

interface FileEditorProps {
  readonly cluster: string
  readonly build: BuildShown
}

function FileEditor({ cluster, build }: FileEditorProps): VNode {
  const editing = useFileEditing()
  const editor = useRef<CodeEditor>(null)
  const [before] = useState(() => textOfFile(build.file))
  const { first, text, change, saved } = useFileText(cluster, before)
  const [isReviewing, setIsReviewing] = useState(false)
  const [refusal, setRefusal] = useState<RequestError>()
  return (
    <section aria-label="Cluster file">
      {build.template !== undefined && (
        <p class="muted">{`The cluster follows the template ${build.template}: only its editable parts may change.`}</p>
      )}
      <FileBar
        isChanged={text !== before}
        isReviewing={isReviewing}
        review={() => setIsReviewing(!isReviewing)}
        discard={() => {
          editor.current?.setText(before)
          setIsReviewing(false)
        }}
      />
      <RegisteredMachines
        cluster={cluster}
        text={text}
        add={(machine) => editor.current?.setText(withMachine(text, machine))}
      />
      {refusal && <Refusal error={refusal} />}
      {isReviewing && text !== before && (
        <ReviewedFile
          {...{ cluster, build, before, text }}
          saved={saved}
          refused={(error) => {
            setRefusal(error)
            setIsReviewing(false)
            editor.current?.mark(error === undefined ? [] : faultsOf(error, text))
          }}
        />
      )}
      <EditorBox
        text={first}
        label="Cluster file"
        isReadOnly={false}
        {...editing}
        onChange={change}
        onReady={(ready) => (editor.current = ready)}
      />
    </section>
  )
}

interface FileText {
  /** Of the editor at first. */
  readonly first: string
  readonly text: string
  readonly change: (text: string) => void
  readonly saved: () => void
}

/** The edited text. It survives a reload of the page. */
function useFileText(cluster: string, before: string): FileText {
  const draftKey = `cluster file ${cluster}`
  const [first] = useState(() => readDraft(draftKey)?.text ?? before)
  const [text, setText] = useState(first)
  const saved = (): void => dropDraft(draftKey)
  const change = (next: string): void => {
    setText(next)
    if (next === before) saved()
    else keepDraft(draftKey, { text: next })
  }
  return { first, text, change, saved }
}

interface FileBarProps {
  readonly isChanged: boolean
  readonly isReviewing: boolean
  readonly review: () => void
  readonly discard: () => void
}

function FileBar({ isChanged, isReviewing, review, discard }: FileBarProps): VNode {
  return (
    <div class="yaml-bar">
      <button type="button" class="primary" disabled={!isChanged} onClick={review}>
        {isReviewing ? 'Go on writing' : 'Show the difference'}
      </button>
      <button type="button" disabled={!isChanged} onClick={discard}>
        Discard
      </button>
    </div>
  )
}

interface ReviewedFileProps extends FileEditorProps {
  readonly before: string
  readonly text: string
  readonly saved: () => void
  /** Undefined: an earlier refusal does not hold any more. */
  readonly refused: (error: RequestError | undefined) => void
}

/** The difference, and the button that saves the file. */
function ReviewedFile({ cluster, build, before, text, saved, refused }: ReviewedFileProps): VNode {
  const [keepsSecrets, setKeepsSecrets] = useState(true)
  const [isBusy, setIsBusy] = useState(false)
  const save = (): void => {
    setIsBusy(true)
    refused(undefined)
    saveFile(cluster, before, { file: text, keepsSecrets })
      .then(
        () => {
          saved()
          return go({ page: 'server-view', view: 'clusters', item: cluster }, { tab: 'operations' })
        },
        (error: unknown) => {
          if (!(error instanceof RequestError)) throw error
          refused(error)
        },
      )
      .finally(() => setIsBusy(false))
  }
  return (
    <div class="box">
      <TextDifference left={{ title: 'Present file', text: before }} right={{ title: 'Your text', text }} />
      {build.secrets.length > 0 && (
        <label class="choice">
          <input
            type="checkbox"
            checked={keepsSecrets}
            onChange={({ currentTarget }) => setKeepsSecrets(currentTarget.checked)}
          />
          {` Keep the keys and passwords that the text does not have: ${build.secrets.join(', ')}`}
        </label>
      )}
      <p>
        {build.approval === 'Automatic'
          ? 'The server applies the plan of the new file at once.'
          : 'The server shows the plan of the new file and waits for your approval.'}
      </p>
      <button type="button" class="primary" disabled={isBusy} onClick={save}>
        Save the cluster file
      </button>
    </div>
  )
}

/** Rejects with RequestError, also if the file is not the one any more that the user has seen. */
async function saveFile(cluster: string, seen: string, body: object): Promise<void> {
  const path = buildRoute(cluster, 'build')
  const { file } = await sendForJson<BuildShown>(path)
  if (textOfFile(file) !== seen) {
    const message = 'The cluster file has changed since this page read it. Copy your text, reload the page and compare.'
    throw new RequestError({ code: 409, message })
  }
  await send(path, { method: 'PUT', body })
}
