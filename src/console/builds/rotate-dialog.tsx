/** The dialog that rotates certificates, authorities or the encryption key of a built cluster. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { SelectField } from '../forms/choices.tsx'
import { Dialog } from '../forms/dialog.tsx'
import { Form } from '../forms/form.tsx'
import { openOperation } from '../operations/open-operation.ts'

const SERVICES = [
  'kube-apiserver',
  'kube-controller-manager',
  'kube-scheduler',
  'kubelet',
  'kube-proxy',
  'etcd',
] as const

const CHOICES = [
  { value: 'all', text: 'Certificates of all services' },
  ...SERVICES.map((service) => ({ value: service, text: `Certificates of ${service}` })),
  { value: 'authorities', text: 'Certificates and their authorities' },
  { value: 'encryption', text: 'The key that encrypts Secrets in etcd' },
]

function requestFor(what: string): object {
  if (what === 'encryption') return { type: 'RotateEncryptionKey' }
  if (what === 'authorities') return { type: 'RotateCertificates', rotatesAuthorities: true }
  return { type: 'RotateCertificates', ...(what !== 'all' && { service: what }) }
}

function consequenceOf(what: string): string {
  if (what === 'encryption') return 'A new key encrypts all Secrets again, in several stages. Pods keep running.'
  if (what === 'authorities')
    return 'New authorities, and certificates from them. Pods keep running, but those of addons restart. Kubeconfigs that lead straight to the API servers are refused from then on: download new ones.'
  return 'New certificates from the present authorities. Services restart with them; pods keep running.'
}

export interface RotateDialogProps {
  readonly cluster: string
  readonly close: () => void
}

export function RotateDialog({ cluster, close }: RotateDialogProps): VNode {
  const [what, setWhat] = useState('all')
  const submit = async (): Promise<void> => {
    await openOperation(cluster, requestFor(what))
    close()
  }
  return (
    <Dialog title="Rotate certificates and keys" close={close}>
      <Form label="Rotate certificates and keys" action="Rotate" submit={submit} cancel={close}>
        <SelectField name="what" label="New" choices={CHOICES} value={what} onChange={setWhat} />
        <p>{consequenceOf(what)}</p>
      </Form>
    </Dialog>
  )
}
