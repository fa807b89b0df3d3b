/** Why a container was not started: what it waits for, in the words of its status. */
export class StartError extends Error {
  override readonly name = 'StartError'
  /** `ErrImagePull`, `CreateContainerConfigError`, … */
  readonly reason: string
  /** What the event says, after `Error: `; undefined when it was told already. */
  readonly said: string | undefined

  constructor(reason: string, message: string, said?: string) {
    super(message)
    this.reason = reason
    this.said = said
  }
}
