/** The dialog that gives a role to a user, or to a group of an identity provider. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import type { Project } from '../api/projects.ts'
import { sendForJson } from '../api/request.ts'
import type { LoginProvider } from '../browser/session.ts'
import { SelectField } from '../forms/choices.tsx'
import { Dialog } from '../forms/dialog.tsx'
import { Field, Form } from '../forms/form.tsx'
import { useLoaded } from '../parts/use-loaded.ts'
import { addMember } from './members.ts'
import { type ServerRole, titleOfRole } from './roles.ts'
import type { ServerUser } from './users.ts'

export interface AddMemberProps {
  readonly title: string
  /** Empty: a member of the server. */
  readonly cluster: string
  /** Of the cluster: those whose members the user may manage. */
  readonly projects?: readonly Project[]
  /** False: only members of projects may be added. */
  readonly offersCluster?: boolean
  /** The name of the only user who can be added. */
  readonly user?: string
  /** Undefined: the user may not list users, and types the id of one. */
  readonly users?: readonly ServerUser[] | undefined
  readonly roles: readonly ServerRole[]
  readonly close: () => void
}

export function AddMemberDialog(props: AddMemberProps): VNode {
  const { title, cluster, projects = [], offersCluster = true, user, roles, close } = props
  const [project, setProject] = useState(offersCluster ? '' : (projects[0]?.metadata.name ?? ''))
  const scope = cluster === '' ? 'global' : project === '' ? 'cluster' : 'project'
  const choices = roles
    .filter(({ spec }) => spec.scope === scope)
    .map((role) => ({ value: role.metadata.name, text: titleOfRole(role) }))
  const places = [
    ...(offersCluster ? [{ value: '', text: 'The whole cluster' }] : []),
    ...projects.map(({ metadata, spec }) => ({ value: metadata.name, text: `Project ${spec.displayName}` })),
  ]
  return (
    <Dialog title={title} close={close}>
      <Form
        label={title}
        action="Give the role"
        cancel={close}
        submit={async ({ role = '', ...fields }) => {
          const place = { cluster, ...(project !== '' && { project }) }
          await addMember(place, { role, ...(user === undefined ? subjectOf(fields) : { user }) })
          close()
        }}
      >
        {user === undefined && <SubjectFields users={props.users} />}
        {cluster !== '' && (
          <SelectField name="place" label="In" choices={places} value={project} onChange={setProject} />
        )}
        <SelectField key={scope} name="role" label="Role" choices={choices} />
        <p class="muted">You can give only roles whose rights you have yourself.</p>
      </Form>
    </Dialog>
  )
}

const SUBJECTS = [
  { value: 'user', text: 'A user' },
  { value: 'group', text: 'A group of an identity provider' },
]

function SubjectFields({ users }: { readonly users: readonly ServerUser[] | undefined }): VNode {
  const [subject, setSubject] = useState('user')
  return (
    <>
      <SelectField name="subject" label="To" choices={SUBJECTS} value={subject} onChange={setSubject} />
      {subject === 'group' ? <GroupFields /> : <UserField users={users} />}
    </>
  )
}

function UserField({ users }: { readonly users: readonly ServerUser[] | undefined }): VNode {
  if (users === undefined)
    return <Field name="user" label="Id of the user (u-…), which the page Account shows to the user" />
  const choices = users.map(({ name, username, displayName }) => ({
    value: name,
    text: displayName === username ? username : `${username} (${displayName})`,
  }))
  return <SelectField name="user" label="User" choices={choices} />
}

function GroupFields(): VNode {
  const { value: providers } = useLoaded('providers', loadProviders)
  const choices = providers?.map(({ name, displayName }) => ({ value: name, text: displayName })) ?? []
  if (providers?.length === 0) return <p class="words words-busy">This server has no identity provider.</p>
  return (
    <>
      <SelectField name="provider" label="Provider" choices={choices} />
      <Field name="group" label="Group" />
    </>
  )
}

/** Without the passwords of this server, which have no groups. */
async function loadProviders(signal: AbortSignal): Promise<readonly LoginProvider[]> {
  const { items } = await sendForJson<{ items: readonly LoginProvider[] }>('/v3-public/providers', { signal })
  return items.filter(({ type }) => type !== 'local')
}

function subjectOf({ user, provider = '', group }: Readonly<Record<string, string>>): {
  readonly user?: string
  readonly group?: string
} {
  if (group !== undefined) return { group: `${provider}:${group.trim()}` }
  return { user: user?.trim() ?? '' }
}
