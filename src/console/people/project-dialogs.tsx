/** The dialogs that create, change and delete projects, and that create and move namespaces. */
import type { VNode } from 'preact'

import { type Project } from '../api/projects.ts'
import { SelectField } from '../forms/choices.tsx'
import { ConfirmDialog } from '../forms/confirm-dialog.tsx'
import { Dialog } from '../forms/dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import type { OwnRights } from './own-rights.ts'
import { changeProject, createNamespace, createProject, deleteProject, moveNamespace } from './projects.ts'

export type OpenProjectDialog =
  | { readonly type: 'create' }
  | { readonly type: 'change' | 'delete' | 'namespace'; readonly project: Project }
  /** `project` is where the namespace is now. Empty: in none. */
  | { readonly type: 'move'; readonly name: string; readonly project: string }

export interface ProjectDialogProps {
  readonly cluster: string
  readonly dialog: OpenProjectDialog
  readonly projects: readonly Project[]
  readonly rights: OwnRights
  /** Called when the dialog is over. */
  readonly close: () => void
}

export function ProjectDialog({ dialog, ...props }: ProjectDialogProps): VNode {
  const { cluster, close } = props
  switch (dialog.type) {
    case 'create':
      return <FieldsDialog {...{ cluster, close }} />
    case 'change':
      return <FieldsDialog {...{ cluster, close }} project={dialog.project} />
    case 'namespace':
      return <NamespaceDialog {...{ cluster, close }} project={dialog.project} />
    case 'move':
      return <MoveDialog {...props} name={dialog.name} from={dialog.project} />
    case 'delete':
      return (
        <ConfirmDialog
          title={`Delete the project ${dialog.project.spec.displayName}`}
          action="Delete"
          run={() => deleteProject(cluster, dialog.project.metadata.name)}
          close={close}
        >
          <p>Its namespaces stay, without a project. Its members lose their rights in them.</p>
        </ConfirmDialog>
      )
  }
}

interface FieldsDialogProps {
  readonly cluster: string
  readonly close: () => void
  /** Undefined: a new one. */
  readonly project?: Project
}

function FieldsDialog({ cluster, close, project }: FieldsDialogProps): VNode {
  const title = project === undefined ? 'Create a project' : `Change the project ${project.spec.displayName}`
  return (
    <Dialog title={title} close={close}>
      <Form
        label={title}
        action={project === undefined ? 'Create' : 'Save'}
        cancel={close}
        submit={async ({ displayName = '', description = '' }) => {
          const fields = { displayName, ...(description !== '' && { description }) }
          if (project === undefined) await createProject(cluster, fields)
          else await changeProject(cluster, project.metadata.name, fields)
          close()
        }}
      >
        <Field name="displayName" label="Name" value={project?.spec.displayName ?? ''} />
        <Field name="description" label="Description (optional)" value={project?.spec.description ?? ''} isOptional />
      </Form>
    </Dialog>
  )
}

interface NamespaceDialogProps extends FieldsDialogProps {
  readonly project: Project
}

function NamespaceDialog({ cluster, close, project }: NamespaceDialogProps): VNode {
  const title = `Create a namespace in ${project.spec.displayName}`
  return (
    <Dialog title={title} close={close}>
      <Form
        label={title}
        action="Create"
        cancel={close}
        submit={async ({ name = '' }) => {
          await createNamespace(cluster, project.metadata.name, name.trim())
          close()
        }}
      >
        <p>The members of the project get their rights in it.</p>
        <Field name="name" label="Name of the namespace" />
      </Form>
    </Dialog>
  )
}

interface MoveDialogProps extends Omit<ProjectDialogProps, 'dialog'> {
  readonly name: string
  readonly from: string
}

function MoveDialog({ cluster, projects, rights, name, from, close }: MoveDialogProps): VNode {
  const title = `Move the namespace ${name}`
  const choices = [
    ...projects
      .filter(({ metadata }) => metadata.name !== from && rights('manage', 'namespaces', metadata.name))
      .map(({ metadata, spec }) => ({ value: metadata.name, text: spec.displayName })),
    ...(from !== '' && rights('manage', 'namespaces') ? [{ value: '', text: 'Out of its project' }] : []),
  ]
  return (
    <Dialog title={title} close={close}>
      {choices.length === 0 ? (
        <>
          <p>There is no other project whose namespaces you manage.</p>
          <button type="button" onClick={close}>
            Close
          </button>
        </>
      ) : (
        <Form
          label={title}
          action="Move"
          cancel={close}
          submit={async ({ project = '' }) => {
            await moveNamespace(cluster, name, project === '' ? null : project)
            close()
          }}
        >
          <p>The members of its present project lose their rights in it. Those of the new one get theirs.</p>
          <SelectField name="project" label="To" choices={choices} />
        </Form>
      )}
    </Dialog>
  )
}
