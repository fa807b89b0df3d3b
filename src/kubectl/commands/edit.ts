/** kubectl edit: edits objects on the server in an editor. */
import { flag } from '#lib/flags/flags.ts'
import { bool, string } from '#lib/flags/kinds.ts'

import { selectFor } from '../builder/selection.ts'
import { type Command, defineCommand } from '../command.ts'
import { editObjects } from '../edit/editing.ts'
import { KubectlError } from '../errors.ts'
import { fieldManagerFlag, fieldValidationOf, fileFlags, VALIDATE_FLAG } from '../flag-sets.ts'
import { printFlags } from '../printing.ts'
import { RECORD_FLAG } from '../recording.ts'

export const edit: Command = defineCommand({
  name: 'edit',
  use: '(RESOURCE/NAME | -f FILENAME) [options]',
  long: 'Edit a resource on the server in the editor from KUBE_EDITOR or EDITOR, or in vi. If the server rejects a change, the file opens again with the error.',
  examples: `# Edit the service 'registry'
kubectl edit svc/registry

# Use another editor
KUBE_EDITOR="nano" kubectl edit svc/registry

# Edit the status of a deployment
kubectl edit deployment mydeployment --subresource='status'`,
  flags: {
    ...printFlags(),
    ...fileFlags('to use to edit the resource'),
    ...VALIDATE_FLAG,
    ...RECORD_FLAG,
    ...fieldManagerFlag('kubectl-edit'),
    'output-patch': flag(bool, false, 'Print the patch that kubectl sends.'),
    'save-config': flag(bool, false, 'Save the configuration in an annotation for kubectl apply.'),
    subresource: flag(string, '', 'Edit this subresource of the object.'),
    'windows-line-endings': flag(bool, false, 'Use Windows line endings in the edited file.'),
  },
  completes: 'resources',
  async run(invocation) {
    const { args, flags } = invocation
    const selection = await selectFor(invocation, {
      args,
      allowEmptySelector: true,
      latest: true,
      ...(flags.subresource !== '' && { subresource: flags.subresource }),
    })
    const fieldValidation = fieldValidationOf(flags.validate)
    const { infos, error } = await selection.infos()
    if (error !== undefined) throw error
    if (infos.length === 0) throw new KubectlError('edit cancelled, no objects found')
    await editObjects(invocation, infos, { mode: 'objects', fieldValidation })
  },
})
