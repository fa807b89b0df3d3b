/** Creates objects of any kinds from YAML, which small forms can write. */
import type { VNode } from 'preact'
import { useRef, useState } from 'preact/hooks'

import { kindsOfCluster } from '../browser/kinds-of-cluster.ts'
import { Field, Form } from '../forms/form.tsx'
import { ObjectLink } from '../objects/object-link.tsx'
import { location } from '../routing/router.tsx'
import type { CodeEditor } from './code-editor.ts'
import { createAll, type Created } from './creation.ts'
import { dropDraft, keepDraft, readDraft } from './draft.ts'
import { EditorBox } from './editor-box.tsx'
import { appendDocument, type Template, TEMPLATES } from './templates.ts'
import { useSchemas } from './use-schemas.ts'
import { parseDocuments } from './yaml-text.ts'

export interface CreateViewProps {
  readonly cluster: string
}

export function CreateView({ cluster }: CreateViewProps): VNode {
  const draftKey = `create ${cluster}`
  const editor = useRef<CodeEditor>(null)
  const [firstText] = useState(() => readDraft(draftKey)?.text ?? '')
  const [isBusy, setIsBusy] = useState(false)
  const [results, setResults] = useState<{ readonly created: readonly Created[]; readonly isDryRun: boolean }>()
  const schemas = useSchemas(cluster)
  const namespace = location.value.query['ns'] ?? ''
  const run = async (isDryRun: boolean, isForced = false): Promise<void> => {
    const { kinds } = kindsOfCluster(cluster).value
    const documents = parseDocuments(editor.current?.text() ?? '')
    setIsBusy(true)
    try {
      const created = await createAll(documents, { cluster, kinds, namespace, isDryRun, isForced })
      editor.current?.mark(created.flatMap(({ problems }) => problems))
      if (!isDryRun && created.every(({ sent }) => sent !== undefined)) dropDraft(draftKey)
      setResults({ created, isDryRun })
    } finally {
      setIsBusy(false)
    }
  }
  const add = (object: object): void => editor.current?.setText(appendDocument(editor.current.text(), object))
  return (
    <section class="yaml" aria-label="Create">
      <TemplateForms add={add} namespace={namespace} />
      <CreateBar isBusy={isBusy} namespace={namespace} run={(isDryRun) => void run(isDryRun)} />
      {results !== undefined && (
        <Results cluster={cluster} {...results} takeOver={() => void run(results.isDryRun, true)} />
      )}
      <EditorBox
        text={firstText}
        label="YAML of the new objects"
        isReadOnly={false}
        schemaAt={schemas.schemaAt}
        check={schemas.check}
        onChange={(text) => keepDraft(draftKey, { text })}
        onReady={(ready) => (editor.current = ready)}
      />
    </section>
  )
}

interface CreateBarProps {
  readonly isBusy: boolean
  readonly namespace: string
  readonly run: (isDryRun: boolean) => void
}

function CreateBar({ isBusy, namespace, run }: CreateBarProps): VNode {
  return (
    <div class="yaml-bar">
      <button type="button" disabled={isBusy} onClick={() => run(true)}>
        Check
      </button>
      <button type="button" class="primary" disabled={isBusy} onClick={() => run(false)}>
        Apply
      </button>
      <span class="muted">
        {namespace === '' ? 'Without a namespace: default' : `Without a namespace: ${namespace}`}
      </span>
    </div>
  )
}

interface TemplateFormsProps {
  readonly namespace: string
  readonly add: (object: object) => void
}

function TemplateForms({ namespace, add }: TemplateFormsProps): VNode {
  const [chosen, setChosen] = useState<Template>()
  const write = (fields: Readonly<Record<string, string>>): Promise<void> => {
    if (chosen !== undefined) add(chosen.write(fields, namespace === '' ? 'default' : namespace))
    setChosen(undefined)
    return Promise.resolve()
  }
  return (
    <div class="box templates">
      <p class="muted">Write or paste YAML below, or begin with a form:</p>
      <div class="yaml-bar">
        {TEMPLATES.map((template) => (
          <button
            key={template.kind}
            type="button"
            aria-expanded={chosen === template}
            onClick={() => setChosen(chosen === template ? undefined : template)}
          >
            {template.kind}
          </button>
        ))}
      </div>
      {chosen !== undefined && (
        <Form
          key={chosen.kind}
          label={chosen.kind}
          action="Write the YAML"
          submit={write}
          cancel={() => setChosen(undefined)}
        >
          {chosen.fields.map(({ name, label, value, isOptional = false }) => (
            <Field key={name} name={name} label={label} value={value} isOptional={isOptional} />
          ))}
        </Form>
      )}
    </div>
  )
}

interface ResultsProps {
  readonly cluster: string
  readonly created: readonly Created[]
  readonly isDryRun: boolean
  readonly takeOver: () => void
}

function Results({ cluster, created, isDryRun, takeOver }: ResultsProps): VNode {
  if (created.length === 0) return <p role="status">The text has no objects.</p>
  return (
    <div role="status" class="box">
      <ul class="results">
        {created.map((one, at) => (
          <li key={at}>
            <ResultLine cluster={cluster} result={one} isDryRun={isDryRun} />
          </li>
        ))}
      </ul>
      {isDryRun && <p class="muted">This was a check: nothing is stored.</p>}
      {created.some(({ conflicts }) => conflicts.length > 0) && (
        <button type="button" class="danger" onClick={takeOver}>
          Take over fields of other managers
        </button>
      )}
    </div>
  )
}

function ResultLine({
  cluster,
  result,
  isDryRun,
}: {
  readonly cluster: string
  readonly result: Created
  readonly isDryRun: boolean
}): VNode {
  const { title, sent, message = '', conflicts } = result
  if (sent === undefined) {
    return (
      <span class="words words-bad">
        <bdi>{`${title}: ${message}`}</bdi>
        {conflicts.map(({ manager, field }) => (
          <bdi key={field}>{` ${manager} owns ${field}.`}</bdi>
        ))}
      </span>
    )
  }
  const { apiVersion = '', kind = '', metadata } = sent.object
  const { name = '', namespace } = metadata
  const verb = sent.isNew ? 'created' : 'changed'
  return (
    <span>
      {isDryRun ? (
        <bdi>{title}</bdi>
      ) : (
        <ObjectLink cluster={cluster} to={{ apiVersion, kind, name, namespace }}>
          <bdi>{`${kind} ${name}`}</bdi>
        </ObjectLink>
      )}
      {isDryRun ? ` would be ${verb}` : ` is ${verb}`}
      {sent.warnings.map((warning) => (
        <span key={warning} class="words words-busy">{` Warning: ${warning}`}</span>
      ))}
    </span>
  )
}
