/** The error of a container that was not started, with the reason and message of its waiting state. */
export class StartError extends Error {
  override readonly name = 'StartError'
  /** `ErrImagePull`, `CreateContainerConfigError`, … */
  readonly reason: string
  /** Text of the event after `Error: `; undefined when the event is already recorded. */
  readonly eventText: string | undefined

  constructor(reason: string, message: string, eventText?: string) {
    super(message)
    this.reason = reason
    this.eventText = eventText
  }
}
