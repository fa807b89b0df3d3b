/** Cluster templates: the list, one of them, and the form that creates one. All users may read them. */
import type { VNode } from 'preact'
import { useRef, useState } from 'preact/hooks'

import { RequestError, send, sendForJson } from '../api/request.ts'
import { hasRight, session } from '../browser/session.ts'
import type { CodeEditor } from '../editor/code-editor.ts'
import { EditorBox } from '../editor/editor-box.tsx'
import { toYaml } from '../editor/yaml-text.ts'
import { AreaField } from '../forms/area-field.tsx'
import { ConfirmDialog } from '../forms/confirm-dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import { AgeText } from '../parts/age-text.tsx'
import { LoadedView } from '../parts/loaded-view.tsx'
import { LongText } from '../parts/long-text.tsx'
import { Notice } from '../parts/notice.tsx'
import { PlainTable } from '../parts/plain-table.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import { go, Link } from '../routing/router.tsx'
import { faultsOf } from './file-schema.ts'
import { type ClusterTemplate, pathsIn, TEMPLATES_PATH } from './templates.ts'
import { useFileEditing } from './use-file-editing.ts'

const NEW = 'new'

export function TemplatesView({ item }: { readonly item: string }): VNode {
  const loaded = useLoaded(TEMPLATES_PATH, (signal) =>
    sendForJson<{ items: readonly ClusterTemplate[] }>(TEMPLATES_PATH, { signal }),
  )
  if (item === NEW && hasRight('add clustertemplates')) return <NewTemplate created={loaded.reload} />
  return (
    <LoadedView of={loaded} name="cluster templates">
      {({ items }) =>
        item === '' ? (
          <TemplateList templates={items} />
        ) : (
          <OneTemplate
            template={items.find(({ metadata }) => metadata.name === item)}
            name={item}
            removed={loaded.reload}
          />
        )
      }
    </LoadedView>
  )
}

function TemplateList({ templates }: { readonly templates: readonly ClusterTemplate[] }): VNode {
  return (
    <>
      <p class="muted">Clusters that follow a template differ from it only in its editable parts.</p>
      {hasRight('add clustertemplates') ? (
        <div class="yaml-bar">
          <Link to={{ page: 'server-view', view: 'cluster-templates', item: NEW }} class="button primary">
            Create a template
          </Link>
        </div>
      ) : (
        <p class="muted">Creating templates needs the global role clustertemplates-create.</p>
      )}
      {templates.length === 0 ? (
        <Notice
          title="There are no cluster templates"
          text="A template is a cluster file that several clusters share."
        />
      ) : (
        <PlainTable
          label="Cluster templates"
          columns={['Name', 'Description', 'Editable', 'Created']}
          rows={templates}
          keyOf={({ metadata }) => metadata.name ?? ''}
          cells={({ metadata, spec }) => [
            <Link to={{ page: 'server-view', view: 'cluster-templates', item: metadata.name ?? '' }}>
              <bdi>{spec.displayName}</bdi>
            </Link>,
            spec.description,
            <LongText text={spec.editable.join(', ')} name="the editable paths" />,
            <AgeText time={metadata.creationTimestamp ?? ''} />,
          ]}
        />
      )}
    </>
  )
}

interface OneTemplateProps {
  readonly template: ClusterTemplate | undefined
  readonly name: string
  readonly removed: () => void
}

function OneTemplate({ template, name, removed }: OneTemplateProps): VNode {
  const [isRemoving, setIsRemoving] = useState(false)
  if (template === undefined) return <Notice title={`There is no cluster template ${name}`} text="It was removed." />
  const { spec } = template
  const { user } = session.value ?? {}
  const mayRemove = user?.isAdministrator === true || spec.createdBy === user?.name
  const remove = async (): Promise<void> => {
    await send(`${TEMPLATES_PATH}/${encodeURIComponent(name)}`, { method: 'DELETE' })
    removed()
    go({ page: 'server-view', view: 'cluster-templates', item: '' })
  }
  return (
    <>
      <header class="page-head">
        <h2>
          <bdi>{spec.displayName}</bdi>
        </h2>
        <span class="muted">{name}</span>
        <span class="bar-space" />
        {mayRemove && (
          <button type="button" class="danger" onClick={() => setIsRemoving(true)}>
            Remove …
          </button>
        )}
      </header>
      {spec.description !== undefined && <p>{spec.description}</p>}
      <p>
        {'Editable: '}
        <LongText text={spec.editable.join(', ')} name="the editable paths" />
      </p>
      <EditorBox key={name} text={toYaml(spec.config)} label="Cluster file of the template" isReadOnly />
      {isRemoving && (
        <ConfirmDialog
          title={`Remove ${spec.displayName}`}
          action="Remove"
          run={remove}
          close={() => setIsRemoving(false)}
        >
          <p>The server keeps a template as long as a cluster follows it.</p>
        </ConfirmDialog>
      )}
    </>
  )
}

function NewTemplate({ created }: { readonly created: () => void }): VNode {
  const editing = useFileEditing()
  const editor = useRef<CodeEditor>(null)
  const submit = async ({ displayName, description = '', editable = '' }: Readonly<Record<string, string>>) => {
    const file = editor.current?.text() ?? ''
    const body = {
      displayName,
      ...(description.trim() !== '' && { description: description.trim() }),
      file,
      editable: pathsIn(editable),
    }
    try {
      const { metadata } = await sendForJson<ClusterTemplate>(TEMPLATES_PATH, { method: 'POST', body })
      created()
      go({ page: 'server-view', view: 'cluster-templates', item: metadata.name ?? '' })
    } catch (error) {
      if (error instanceof RequestError) editor.current?.mark(faultsOf(error, file))
      throw error
    }
  }
  return (
    <div class="build-form">
      <Form
        label="Create a cluster template"
        action="Create the template"
        submit={submit}
        cancel={() => go({ page: 'server-view', view: 'cluster-templates', item: '' })}
      >
        <p class="muted">A template never changes, and has no keys and passwords.</p>
        <Field name="displayName" label="Name" />
        <Field name="description" label="Description" isOptional />
        <AreaField
          name="editable"
          label="Editable paths, one in a line, such as nodes or services.kubelet.extra_args"
          value="nodes"
        />
        <EditorBox
          text={FIRST}
          label="Cluster file of the template"
          isReadOnly={false}
          {...editing}
          onReady={(ready) => (editor.current = ready)}
        />
      </Form>
    </div>
  )
}

const FIRST = 'network:\n  plugin: canal\n'
